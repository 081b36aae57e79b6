"""`hoicli.triplets`: a batch of a detector's outputs, as `Evaluator.update` takes them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from hoicli.api.network_outputs.detected_pairs import pair_triplets
from hoicli.api.network_outputs.query_heads import INTERACTIONS, MATCHING, Heads, query_triplets
from hoicli.api.network_outputs.ranking_rules import MOST_TRIPLETS, read_vcoco_correct_mat
from hoicli.errors import DataError, HoicliWarning, UsageError
from hoicli.interface.command import wrap_for_python
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Path
from hoicli.vocabulary.datasets import load


@wrap_for_python
def triplets(
    outputs: Any,
    sizes: Any,
    *,
    dataset: Path | None = None,
    top_k: int | str | None = None,
    matching: bool | None = None,
    correct_mat: Any = None,
    pairing: str | None = None,
    last_pixels: bool = False,
) -> list[dict[str, Any]]:
    """Return the best triplets of each image of a batch, as the arguments of `Evaluator.update`:

        for image_id, found in zip(image_ids, hoicli.triplets(model(images), sizes), strict=True):
            evaluator.update(image_id, **found)

    outputs: what the network returns for N images.

    - QPIC, CDN: arrays by their names, for Q queries an image: pred_obj_logits [N, Q, objects + 1], the last for no
      object; pred_verb_logits [N, Q, verbs]; pred_sub_boxes and pred_obj_boxes [N, Q, 4], cx, cy, w, h as shares of the
      image's sides; pred_matching_logits [N, Q, 2] if `matching`. With V-COCO 82 objects, of which 80 is that of an
      action without an object, and 29 verbs, which are action and role together.
    - GEN-VLKT, HOICLIP: the same with pred_hoi_logits [N, Q, 600] in place of pred_verb_logits, 263 with V-COCO.
    - UPT, PViC: a list with a dictionary for each image: boxes [B, 4], x1, y1, x2, y2 in pixels of the resized image;
      pairing [2, P] or [P, 2], rows of `boxes`; scores, labels (verbs), objects [P]; size (height, width) of the
      resized image. With V-COCO the 24 actions of fredzzhang/vcoco.

    Other outputs are not read. Classes are in the dataset's order (`hoicli vocab`; objects in COCO's, person 0).
    sizes [N, 2]: height and width of the original images in pixels. dataset: a name or a file, HICO-DET by default.
    top_k: how many triplets an image gets, of equal ones the first; "all"; by default as the released evaluators take
    them, 100 of queries and all of UPT's. matching: whether pred_matching_logits are a factor of scores, as with CDN's
    --use_matching; if it is not said they are not, and a `HoicliWarning` says so. correct_mat [29, 80]: the factors of
    scores of V-COCO's verbs and objects, from the released dataset. pairing: "2xP" (UPT) or "Px2" (PViC), where the
    shape does not tell. last_pixels: takes 1 off x2 and y2 of UPT's boxes, as its cache_hico does for the official code
    (`hico`); its test_hico (`upt`) does not.

    Scores are those of the released code, for queries in double precision. QPIC, CDN: a query's object is its
    likeliest; sigmoid(verb) x softmax(object) x softmax(matching), for the verbs that make an interaction of the
    dataset with the object. GEN-VLKT: sigmoid(interaction) + sigmoid(object) squared; of V-COCO's verbs the largest.
    UPT: as they are. CDN's suppression of pairs is an option of `Evaluator` (`nms`).

    Raises `DataError` that names the output and the place, `UsageError` for an argument that the outputs do not have a
    use for."""
    vocabulary = load(text_of(dataset) or "hico")
    if vocabulary.roles and vocabulary.name != "vcoco":
        raise UsageError(f"dataset={vocabulary.name!r}: its verbs have roles; give them to Evaluator.update")
    if top_k not in (None, "all") and (isinstance(top_k, str) or top_k < 1):
        raise UsageError(f'top_k={top_k!r}: give a number from 1, or "all"')
    if pairing not in (None, "2xP", "Px2"):
        raise UsageError(f'pairing={pairing!r}: give "2xP" (UPT) or "Px2" (PViC)')
    if isinstance(outputs, list | tuple):
        _refuse({"matching": matching, "correct_mat": correct_mat}, "UPT's lists of dictionaries")
        if vocabulary.roles:
            _refuse({"last_pixels": last_pixels or None}, "V-COCO, whose boxes UPT's cache_vcoco writes as they are")
        limit = top_k if isinstance(top_k, int) else None
        return pair_triplets(outputs, sizes, vocabulary, limit=limit, last_pixels=last_pixels, form=pairing)
    if not isinstance(outputs, Mapping):
        kind = type(outputs).__name__
        raise DataError(f"is {kind}; give a model's outputs by name, or a list of UPT's dictionaries", field="outputs")
    _refuse({"pairing": pairing, "last_pixels": last_pixels or None}, "outputs of queries")
    if not vocabulary.roles:
        _refuse({"correct_mat": correct_mat}, f"{vocabulary.name}, whose classes say the same")
    if INTERACTIONS in outputs:
        _refuse({"matching": matching or None}, INTERACTIONS)
    elif matching is None and MATCHING in outputs:
        message = (
            f"{MATCHING} are not a factor of the scores (QPIC; CDN without --use_matching); with matching=True they "
            "are (CDN with --use_matching), matching=False says no more of it"
        )
        warnings.warn(message, HoicliWarning, stacklevel=3)
    allowed = None if correct_mat is None else read_vcoco_correct_mat(correct_mat, more_objects=False)
    limit = top_k if isinstance(top_k, int) else None
    if top_k is None:
        limit = MOST_TRIPLETS
    return query_triplets(outputs, sizes, Heads(vocabulary, matching=bool(matching), allowed=allowed, limit=limit))


def _refuse(arguments: Mapping[str, Any], reason: str) -> None:
    """Raise `UsageError` for the first of the arguments that was given. reason: what does not take it."""
    for name, value in arguments.items():
        if value is not None:
            raise UsageError(f"{name}: not with {reason}; leave it out")
