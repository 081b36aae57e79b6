"""How a detector stands corruption: RoHOI's indices (arXiv 2507.09111) from result rows.

`grids` gathers rows tagged with corruption and severity into a grid a model, `indices` has the formulas, `rows` turns
a grid into result rows and tables.
"""
