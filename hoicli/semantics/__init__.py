"""Words and what they mean: WordNet, similarity of senses, and the metrics that stand on it."""
