"""The label sets of the benchmarks: names, numbers and splits."""
