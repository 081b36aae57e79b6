"""Why a detector fails: the type of every error, what fixing each type would give, and pair statistics.

Source: Diag-HOI (IJCV) and what its released code (neu-vi/Diag-HOI) does; where the two differ the paper is the default
and `as_released` the code.
"""
