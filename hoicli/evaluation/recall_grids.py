"""The recall values at which protocols read interpolated precision."""

from __future__ import annotations

# Three recall grids are in use. The AP of a class whose recall is exactly 3/10, 6/10 or 7/10 differs by up to 1/11
# between them, so each is exact to the last bit (tests/evaluation/test_tally.py checks them).
GRID_ARANGE = (0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5, 0.6000000000000001, 0.7000000000000001, 0.8, 0.9, 1.0)
"""numpy.arange(0, 1.1, 0.1). Also taken for the official evaluation's `for t = 0:0.1:1`, as i * 0.1; we have not run it
in MATLAB (docs/protocols.md, "The recall grid of hico")."""
GRID_LINSPACE = (0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""torch.linspace(0, 1, 11) in float64; also MATLAB's 0:0.1:1 as a vector, computed from both ends."""
GRID_TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""i / 10."""
GRIDS = {"arange": GRID_ARANGE, "linspace": GRID_LINSPACE, "tenths": GRID_TENTHS}
"""The grids by their names in files of protocols."""
EVERY_RECALL: tuple[float, ...] = ()
"""No grid: the area under the precision envelope, with a step at every recall (PASCAL VOC since 2010)."""
