"""The possible outcomes of a prediction."""

from __future__ import annotations

OUTCOMES = (
    "false_positive",
    "true_positive",
    "not_an_interaction",  # the vocabulary has no class of this verb and object
    "no_interaction",  # dropped by a protocol that leaves no_interaction out
    "subject_not_person",  # the class requires a subject labelled person
    "over_the_cap",  # beyond the best k of its image
    "suppressed",  # by pair NMS
    "unannotated_image",  # the protocol counts nothing in such images
    "object_not_known",  # Known Object: the image has no label for this object
    "other_class",  # the protocol does not score its class
    "ignored_person",  # it belongs to a person without annotations
    "outside_slice",  # it is in another part of the data
)
"""The first two count; the others say why a prediction does not."""
FALSE_POSITIVE, TRUE_POSITIVE = 0, 1
OUTCOME_CODES = {name: code for code, name in enumerate(OUTCOMES)}
