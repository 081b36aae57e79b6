"""SHOE: how alike meanings are (measured, rated by language models, or read from a table), and open-vocabulary
predictions scored by it."""
