"""Answers to questions about interactions: multiple choice, grounding and referring."""
