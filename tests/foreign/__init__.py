"""The fixtures in other people's formats: each module writes one as its project's own code would.

`python -m tests.foreign` writes fixtures/foreign/ anew from tests/eight/gt.jsonl and tests/eight/predictions.jsonl; the
tests convert each file back and compare. A module has FILE, the name it writes below fixtures/foreign/, and
make(truth, predictions, path). With FORMAT, its name, and KIND, a key of tests.hostile.mutations.STRUCTURE, the format
is also attacked.
"""
