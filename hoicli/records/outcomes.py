"""What becomes of a prediction."""

from __future__ import annotations

OUTCOMES = (
    "false_positive",
    "true_positive",
    "not_an_interaction",  # the vocabulary has no class of this verb and object
    "no_interaction",  # dropped by a protocol that leaves no_interaction out
    "subject_not_person",  # of no class where the subject's label is part of it
    "over_the_cap",  # beyond the best k of its image
    "suppressed",  # by pair NMS
    "unannotated_image",  # the protocol counts nothing in such images
    "object_not_known",  # Known Object: the image has no label for this object
    "other_class",  # of a class that the protocol does not score
    "ignored_person",  # the person it belongs to is annotated by nobody
)
"""What became of a prediction. The first two count; the others say why a prediction does not."""
FALSE_POSITIVE, TRUE_POSITIVE = 0, 1
OUTCOME_CODES = {name: code for code, name in enumerate(OUTCOMES)}
