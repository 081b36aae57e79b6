"""Records as columns, and arithmetic on columns that all metrics share."""
