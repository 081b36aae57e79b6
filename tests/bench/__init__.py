"""`make bench`: one page of what hoicli's commands cost beside a floor and others' code (`python -m tests.bench`)."""
