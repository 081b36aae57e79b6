"""Prompts for vision-language models, and the reading of their answers."""
