"""Records that releases wrote, which every later one reads to the same numbers; formats/ promises it."""
