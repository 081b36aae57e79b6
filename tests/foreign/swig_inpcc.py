"""preds.pkl of the INP-CC family on SWIG-HOI: 14,130 keys, images by img_id."""

from __future__ import annotations

from functools import partial

from tests.foreign import inpcc

FOLDER = "swig"
FILE = "preds.pkl"

make = partial(inpcc.make, dataset="swig")
