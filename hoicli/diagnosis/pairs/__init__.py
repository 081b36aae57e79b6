"""Pair statistics: how well humans and objects are paired before, and told apart after, interaction classification.

HICO-DET by protocol `diag`: equal labels and IoU >= 0.5 on both boxes, no_interaction dropped from both sides, only
images that annotate other interactions. V-COCO by protocol `vcoco-s1`: a pair belongs to the annotated person its
subject overlaps most, whatever the labels, and needs IoU >= 0.5 on both boxes; pairs of people whom nobody annotated
count neither way; statements without an object are no pairs, nor are those that a record leaves to its `unstated`.
Measures as in Diag-HOI (IJCV), sections 4.1 and 4.2, with the choices of its
released code: neu-vi/Diag-HOI pair_localization.py, action_analysis/binary_classification_hicodet.py and
action_analysis/action_map_hicodet.py.

Subsets. A ground-truth pair belongs to `rare` (`non_rare`) if some interaction of it does, so it may belong to both. A
subset's figures are those of a dataset that annotates only its interactions: images without any are left out, and a
detected pair that finds only pairs of other subsets found nothing. Negative AP exists for `full` alone, because a pair
that does something else does interact. Interaction mAP of a subset takes a verb's ground truth and predictions of the
subset's interactions. V-COCO has `full` alone, and its interaction mAP is over action-roles.
"""
