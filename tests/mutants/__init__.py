"""`make mutants`: which small changes of a module no test notices (`python -m tests.mutants`)."""
