"""Result rows as drawings."""
