"""SAMPL, the training side of RoHOI (arXiv 2507.09111, section 4): what a command line can give it.

`masks` draws the semantic-aware masks, `segments` reads instance masks, `pixelation` is the baseline they are compared
with, `curriculum` chooses the next epoch's level.
"""
