"""Everything about a prediction dump on one page."""
