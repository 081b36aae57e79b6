"""WordNet: the lexicon, its graph as arrays, similarities in it, and the senses of labels."""
