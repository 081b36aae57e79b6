"""Pair statistics: how well humans and objects are paired before, and told apart after, interaction classification."""
