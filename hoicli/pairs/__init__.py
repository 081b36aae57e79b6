"""Pair statistics: how well humans and objects are paired, and how well interactions are classified on these pairs."""
