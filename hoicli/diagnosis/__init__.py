"""Why a detector fails: the type of every error, what fixing each type would give.

Source: the Diag-HOI paper (IJCV) and its released code (neu-vi/Diag-HOI); where they differ, the paper is the default
and `as_released` follows the code."""
