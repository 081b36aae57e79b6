"""Names of the settings of `convert --from logits`, apart from the code that computes with them."""

from __future__ import annotations

ACTIVATIONS = ("sigmoid", "softmax")
"""The functions from logits to scores."""

BOX_SCORES = ("logits", "probabilities")
"""The kinds of box_scores."""
