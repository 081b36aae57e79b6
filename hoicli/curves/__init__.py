"""Precision and recall against score thresholds, and how far scores are probabilities."""
