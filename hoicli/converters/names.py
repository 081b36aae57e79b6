"""What the settings of `convert --from logits` are called, apart from the code that computes with them."""

ACTIVATIONS = ("sigmoid", "softmax")
"""What makes a score of a logit."""

BOX_SCORES = ("logits", "probabilities")
"""What box_scores may be."""
