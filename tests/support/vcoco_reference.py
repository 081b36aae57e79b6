"""A slow V-COCO evaluator in plain Python, after what the released ones do, sharing no code with hoicli.

It loops over images, classes and people as s-gupta/v-coco's vsrl_eval.py and QPIC's vcoco_eval.py do. Tests hold the
kernel to it on random data. A class is (verb, role), the role "" being the action itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.project import Record
from tests.support.reference import average_precision, overlap

Box = tuple[float, ...]
Class = tuple[str, str]


@dataclass
class Statement:
    """What a record says of one of its boxes, or leaves to be understood."""

    subject: int
    verb: str
    role: str
    box: Box | None
    label: str | None
    score: float = 0.0
    place: int = 0


def statements(record: Record, roles_of: Mapping[str, tuple[str, ...]], *, scored: bool) -> list[Statement]:
    """Those a record makes, in its order, then those it implies."""
    boxes, labels = record["boxes"], record["labels"]
    said = []
    for hoi in record["hois"]:
        thing = hoi["object"]
        box = None if thing is None else tuple(map(float, boxes[thing]))
        label = None if thing is None else labels[thing]
        score = hoi["score"] if scored else 0.0
        said.append(Statement(hoi["subject"], hoi["verb"], hoi.get("role") or "", box, label, score))
    known = {(one.subject, one.verb, one.role) for one in said}
    more = []
    unstated = record.get("unstated") if scored else None
    for subject, label in enumerate(labels):
        if unstated is not None:
            if label != "person":
                continue
            roles = [(verb, role) for verb, names in roles_of.items() for role in names]
            for verb, role in roles + [(verb, "") for verb in roles_of]:
                if (subject, verb, role) not in known:
                    box = tuple(unstated["object"]) if role else None
                    more.append(Statement(subject, verb, role, box, None, unstated["score"]))
            continue
        for verb in roles_of:
            of_roles = [one.score for one in said if one.subject == subject and one.verb == verb and one.role]
            if of_roles and (subject, verb, "") not in known:
                more.append(Statement(subject, verb, "", None, None, max(of_roles)))
    everything = said + more
    for place, one in enumerate(everything):
        one.place = place
    return everything


def enveloped(hits: list[bool], positives: int) -> float:
    """The area under the precision envelope of ranked hits: from the last to the first, the best precision so far."""
    found = sum(hits)
    area, best = 0.0, 0.0
    for rank in range(len(hits), 0, -1):
        best = max(best, found / rank)
        if hits[rank - 1]:
            area += best / positives
            found -= 1
    return area


def evaluate(
    protocol: str, truth: list[Record], predictions: list[Record], roles_of: Mapping[str, tuple[str, ...]]
) -> dict[Class, tuple[float, int]]:
    """{(verb, role): (AP as a fraction, ground truth)} of the classes the protocol scores and somebody annotated."""
    found = {str(record["image_id"]): record for record in predictions}
    ranked: dict[Class, list[tuple[float, str, int, bool]]] = {}
    positives: dict[Class, int] = {}
    for annotation in truth:
        image = str(annotation["image_id"])
        wanted = [one for one in statements(annotation, roles_of, scored=False) if _scores(protocol, one, roles_of)]
        for one in wanted:
            positives[one.verb, one.role] = positives.get((one.verb, one.role), 0) + 1
        if image not in found:
            continue
        record = found[image]
        offered = [one for one in statements(record, roles_of, scored=True) if _scores(protocol, one, roles_of)]
        offered.sort(key=lambda one: -one.score)
        judge = _judge_by_class if protocol == "vcoco-qpic" else _judge_by_person
        for one, hit in judge(protocol, annotation, record, wanted, offered):
            ranked.setdefault((one.verb, one.role), []).append((-one.score, image, one.place, hit))
    results = {}
    for name, count in positives.items():
        hits = [hit for *_, hit in sorted(ranked.get(name, []))]
        area = average_precision("qpic", hits, count)[0] if protocol == "vcoco-qpic" else enveloped(hits, count)
        results[name] = area, count
    return results


def _scores(protocol: str, one: Statement, roles_of: Mapping[str, tuple[str, ...]]) -> bool:
    if protocol == "vcoco-agent":
        return one.role == ""
    return one.role != "" or (protocol == "vcoco-qpic" and not roles_of[one.verb])


def _judge_by_person(
    protocol: str, annotation: Record, record: Record, wanted: list[Statement], offered: list[Statement]
) -> list[tuple[Statement, bool]]:
    """vsrl_eval.py: the person comes first; predictions on people nobody annotated vanish."""
    people = [index for index, label in enumerate(annotation["labels"]) if label == "person"]
    flags = annotation.get("annotated") or [True] * len(annotation["labels"])
    covered = set()
    judged = []
    for one in offered:
        subject = tuple(map(float, record["boxes"][one.subject]))
        best, most = None, -1.0
        for person in people:
            both = overlap("hico", subject, tuple(map(float, annotation["boxes"][person])))
            if both > most:
                best, most = person, both
        if best is not None and not flags[best]:
            continue
        deed = next((gt for gt in wanted if (gt.subject, gt.verb, gt.role) == (best, one.verb, one.role)), None)
        hit = False
        if deed is not None and most >= 0.5 and id(deed) not in covered:
            hit = _role_is_right(protocol, one, deed)
            if hit:
                covered.add(id(deed))
        judged.append((one, hit))
    return judged


def _role_is_right(protocol: str, one: Statement, deed: Statement) -> bool:
    if protocol == "vcoco-agent":
        return True
    if deed.box is None:
        return protocol == "vcoco-s2" or one.box is None or one.box == (0.0, 0.0, 0.0, 0.0)
    return one.box is not None and overlap("hico", one.box, deed.box) >= 0.5


def _beyond(a: Box, b: Box) -> float:
    """The overlap with ground truth whose far edges are beyond it."""
    return overlap("qpic", a, (b[0], b[1], b[2] + 1, b[3] + 1))


def _judge_by_class(
    protocol: str, annotation: Record, record: Record, wanted: list[Statement], offered: list[Statement]
) -> list[tuple[Statement, bool]]:
    """vcoco_eval.py: the best 100 of an image; the ground truth of the class with the largest smaller overlap."""
    taken = set()
    judged = []
    for one in offered[:100]:
        subject = tuple(map(float, record["boxes"][one.subject]))
        best, most = None, 0.0
        for gt in wanted:
            if (gt.verb, gt.role) != (one.verb, one.role):
                continue
            same = record["labels"][one.subject] == annotation["labels"][gt.subject]
            both = _beyond(subject, tuple(map(float, annotation["boxes"][gt.subject]))) if same else 0.0
            if gt.box is not None:
                both = min(both, _beyond(one.box, gt.box) if one.box is not None and one.label == gt.label else 0.0)
            if both >= 0.5 and both > most:
                best, most = gt, both
        hit = best is not None and id(best) not in taken
        if hit:
            taken.add(id(best))
        judged.append((one, hit))
    return judged
