"""Records as columns, and the arithmetic on them that every metric shares."""
