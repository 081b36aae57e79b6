"""The JSONL contract: image records, result rows and caveats, parsed and checked; records as columns, and arithmetic on
columns that all metrics share."""
