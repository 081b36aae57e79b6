"""How a detector stands corruption: RoHOI's indices (arXiv 2507.09111) from result rows."""
