"""Two models on one ground truth: what differs, and how sure that is."""
