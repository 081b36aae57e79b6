"""The text of `diagnose --explain`."""

from __future__ import annotations

from hoicli.records.metrics import explain_metrics
from hoicli.records.oracles import IN_TURN, ORACLES

EXPLANATION = f"""
What a prediction is corrected to. A fix changes what its type names: an interaction error becomes a ground truth of its
own pair, both of whose boxes it has; an object box error one with its human box; a human box error one with its object
box; an association error one with one of its boxes. Each ground truth of an image, class by class, takes the
best-scored prediction above its own true positive that can be corrected to it and is not taken yet. But an association
error waits while it could still become a later ground truth with its own verb; errors that waited without success go,
at the end, to ground truth that has taken nothing. Ground truth with neither a true positive nor a correction is
missed. A duplicate is dropped, never corrected. The paper fixes each ground-truth pair once; here each triplet of a
pair is.
--independent: each oracle on its own, so each may correct another prediction to the same ground truth.
--progressive ORDER: each oracle after the ones before it (Diag-HOI Eq. 4 and 5); all together give mAP 100. ORDER
is a comma-separated list of names, or all: {",".join(IN_TURN)}.
--as-released: what the released code does. Any false positive, duplicates included, is corrected to ground truth with
its human box or, if that box is wrong, with its object box, even to a pair that was never predicted. Classes whose
predictions are all wrong leave the mean. Its oracles together need not give 100. It has no false_positive and
false_negative for HICO-DET.
In V-COCO a statement has the human box of the person it belongs to, and its verb is its action in its role.
What is right, and mAP, are as the protocol has them: diag is the released code, which made the paper's tables;
diag-paper is the paper's text (section 2.3). They differ twice:
- IoU: an overlap of exactly 0.5 is right by diag, wrong by diag-paper, which wants more than 0.5.
- AP: diag reads the precision-recall curve at 11 recalls, diag-paper takes the area under it.
For example, a class has two ground truths, and its one prediction overlaps one of them: with IoU 0.6, AP is 6/11 =
54.55 by diag (6 of the recalls are reached) and 50.00 by diag-paper; with IoU 0.5, 54.55 and 0.00.
For V-COCO, vcoco-s1 takes the area, and 0.5 is right.
--with-no-interaction: the no_interaction classes count, too, on both sides; otherwise they are dropped first.
A class without ground truth left by missed_gt or false_negative leaves the mean: n is how many classes a mean is over.
So these deltas are between means over different classes.
Errors overlap: the deltas do not add up to what is missing to 100."""


def explanation() -> str:
    """Return the text of `diagnose --explain`: what each oracle fixes, how it does so, how to read the differences,
    and what the metrics of the rows are."""
    width = max(map(len, ORACLES))
    lines = [f"{oracle.name:<{width}}  {oracle.repairs}" for oracle in ORACLES.values()]
    return "\n".join([*lines, EXPLANATION, "", "The metrics of the rows:", explain_metrics("diagnose").rstrip()])
