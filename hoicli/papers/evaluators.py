"""Which evaluator made which paper's numbers: what repositories, and their authors in them, say.

docs/protocols.md shows this table; a test holds the two together. Methods whose repositories say nothing of it are left
out. Words in backquotes are options of hoicli and of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hoicli.records.results import Row


@dataclass(frozen=True)
class Provenance:
    """A row of EVALUATORS: what the tables of these methods hold, who made its numbers, and what makes them here, the
    value of `hoicli eval --protocol` or a command."""

    methods: str
    printed: str
    made_by: str
    here: str


EVALUATORS = (
    Provenance(
        "HO-RCNN",
        "HICO-DET: Default and Known Object, full, rare, non-rare",
        "MATLAB, its own",
        "`hico,hico-ko`",
    ),
    Provenance(
        "iCAN, TIN, DRG",
        "HICO-DET",
        "MATLAB",
        "`hico,hico-ko`",
    ),
    Provenance(
        "PPDM, AS-Net",
        "HICO-DET: Default, Known Object",
        "MATLAB, through PPDM's converter; PPDM's own Python, which chooses the checkpoint, is \"a bit lower\"",
        "`hico,hico-ko`",
    ),
    Provenance(
        "CDN, GEN-VLKT, HOICLIP",
        "HICO-DET: Default, Known Object",
        "MATLAB, as their authors say; training and `--eval` print `qpic` after pair NMS",
        "`hico,hico-ko`",
    ),
    Provenance(
        "GEN-VLKT, HOICLIP",
        "HICO-DET zero-shot: unseen, seen, full of RF-UC, NF-UC, UO, UV",
        "by their READMEs the Python evaluator, `--zero_shot_type`",
        "`qpic --split RF-UC`",
    ),
    Provenance(
        "QPIC",
        "HICO-DET: Default, Known Object",
        "not said, but its code has no Known Object, and the log in its README (29.06, 21.91, 31.20) is not "
        "its table (29.07, 21.85, 31.23)",
        "`hico,hico-ko`, so it seems; the log is `qpic`",
    ),
    Provenance(
        "HOTR",
        "HICO-DET: Default",
        "its Python, modified from QPIC's; the README's table is its printout",
        "`qpic`",
    ),
    Provenance(
        "MUREN",
        "HICO-DET: Default, Known Object",
        "its Python, QPIC's with pair NMS, and a variant of it for Known Object",
        "`qpic --nms T`; its Known Object is not the official one",
    ),
    Provenance(
        "SCG",
        "HICO-DET: Default, Known Object",
        'its Python (pocket) or MATLAB; Known Object MATLAB; the mAP in the training log "follows a slightly'
        ' different protocol"',
        "`upt`, `hico-ko`",
    ),
    Provenance(
        "UPT, PViC",
        "HICO-DET: Default, Known Object",
        "Python (pocket) for Default, MATLAB for Known Object",
        "`upt`, `hico-ko`",
    ),
    Provenance(
        "ADA-CM",
        "HICO-DET: Default",
        "its Python (pocket), `--eval`",
        "`upt`",
    ),
    Provenance(
        "RLIP, RLIPv2",
        "HICO-DET: Default",
        "their Python, QPIC's with pair NMS, which prints while it trains",
        "`qpic --nms T`",
    ),
    Provenance(
        "THID, CMD-SE, INP-CC",
        "HICO-DET: unseen, seen, full of the rare-first split, without no_interaction",
        "their own evaluator",
        "`inp-cc --split RF-UC --ignore-no-interaction`",
    ),
    Provenance(
        "the same",
        "SWIG-HOI: non-rare, rare, unseen, full",
        "their own evaluator",
        "`swig`",
    ),
    Provenance(
        "No-Frills, VSGNet",
        "HICO-DET: full, rare, non-rare",
        "No-Frills' Python, which counts every detection on a ground truth as found, duplicates too",
        "none; `hico` is stricter",
    ),
    Provenance(
        "QPIC, CDN, GEN-VLKT, RLIPv2, SCG, UPT, ADA-CM, MUREN, DOQ",
        "V-COCO: scenario 1, most also 2",
        "the official code",
        "`vcoco-s1,vcoco-s2`",
    ),
    Provenance(
        "HOTR, VSGNet",
        "V-COCO: scenario 1, HOTR also 2",
        "HOTR: its copy of the official code over 24 action-roles; VSGNet: the official code",
        "`vcoco-s1,vcoco-s2`",
    ),
    Provenance(
        "Diag-HOI",
        "mAP and its deltas without no_interaction; pair recall and precision, Neg. AP, Inter. mAP",
        "its own code, on V-COCO person first",
        "`diag`; `diagnose --as-released`, `pairstats --as-released`; not to the digit on V-COCO",
    ),
    Provenance(
        "RoHOI",
        "HICO-DET full, rare, non-rare, V-COCO role AP; MRI and CRI",
        "not named",
        "none: its images' constants are not published; `robust` gives its indices on ours",
    ),
    Provenance(
        "scene graphs: SGG-Benchmark, OpenPSG",
        "R@K, mR@K, zR@K, F1@K, with or without graph constraint",
        "their own code, which differs",
        "`recall`, `recall --as-released`",
    ),
    Provenance(
        "TIN++, Interactiveness Field, Body-Part Map",
        "interactiveness AP",
        "Body-Part Map's code, on its own selection of pairs",
        "`pairstats --interactiveness`, of all pairs",
    ),
    Provenance(
        "OC-Immunity",
        "mPD beside mAP, HICO-DET",
        "its Python, AP as `inp-cc` has it",
        "`inp-cc --mpd`",
    ),
    Provenance(
        "SHOE",
        "SHOE-mAP and mF1, beside mAP",
        "the supplement's algorithms",
        "`shoe-eval`",
    ),
)


def evaluator_rows() -> Iterator[Row]:
    """The table as rows to be written: method, printed, made by, here."""
    for row in EVALUATORS:
        texts = (row.methods, row.printed, row.made_by, row.here)
        yield dict(
            zip(("method", "printed", "made_by", "here"), (text.replace("`", "") for text in texts), strict=True)
        )
