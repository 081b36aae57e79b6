"""Which ground-truth triplets are among the best predictions of their image: recall at K, as scene graphs have it."""
