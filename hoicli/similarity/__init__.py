"""How similar two senses are: measured, rated by language models, or read from a table."""
