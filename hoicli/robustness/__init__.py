"""How a detector stands corruption: RoHOI's indices (arXiv 2507.09111) from result rows; and SAMPL, its training side
(section 4): masks, and the curriculum that chooses the next epoch's level."""
