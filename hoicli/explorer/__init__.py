"""The one page: a summary that prints well, and behind each of its numbers the classes, errors and images."""
