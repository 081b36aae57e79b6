"""Result rows as text."""
