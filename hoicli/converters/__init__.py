"""Foreign formats to records and back."""
