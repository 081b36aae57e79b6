"""hoicli: evaluate human-object interaction detectors from the shell (see README.md)."""

__version__ = "0.1.0"
