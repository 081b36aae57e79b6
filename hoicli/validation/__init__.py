"""What is odd about a stream, before any number is computed."""
