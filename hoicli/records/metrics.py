"""The metrics: what a result row can say, each declared once, for all that makes, checks, shows or explains rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from hoicli.errors import DeclarationError
from hoicli.io.row_tables import rows_by_name
from hoicli.records.kinds import (
    ANYWHERE,
    BIN,
    BOXES,
    CANDIDATE,
    CHANGE,
    CLAIM,
    CLASS,
    COMMON,
    CONFUSION,
    COUNT_OF_CANDIDATES,
    COUNT_OF_CLASSES,
    DIFFERENCE,
    GRID,
    GRID_PART,
    IMAGE,
    LEVEL,
    MEAN,
    NO_VALUE,
    POINT,
    RATERS,
    UNDECLARED,
    Kind,
)

HIGHER, LOWER = 1, -1
"""Which value of a metric is the better one."""
_NOT_SAID = 2


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    name: as result rows have it; {k} in it stands for any number. says: a sentence that says what the metric is.
    source: the section of a paper, or the file of a repository, that defines it. commands: those that print it. words:
    its name in a sentence; head: its name in tables of papers. units: those that its values may be in. better: HIGHER
    or LOWER, whichever values are better, or 0 if that is not known. kinds: what its rows may be about; of those that
    fit a row, the first counts. needs, may: keys that its rows must have, and may have, besides those of their kind.
    settings: keys that the signature of its rows must have. constants: settings of its own, by key, which its signature
    must have as well (pairstats writes them there)."""

    name: str
    says: str
    source: str
    commands: tuple[str, ...]
    words: str = ""
    head: str = ""
    units: tuple[str, ...] = ("%",)
    better: int = _NOT_SAID
    kinds: tuple[Kind, ...] = (MEAN,)
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    settings: tuple[str, ...] = ("protocol", "data", "gt")
    constants: Mapping[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `DeclarationError` for a row that does not say which values are better."""
        if self.better not in (HIGHER, LOWER, 0):
            advice = "say better=HIGHER or better=LOWER, or better=0 where neither is known"
            raise DeclarationError(f"{self.name} in hoicli/records/metrics.py: {advice}")

    def difference(self, **others: Any) -> Metric:
        """Return the declaration of `NAME_diff`, the difference between two models. others: fields that differ from the
        usual ones of a difference."""
        says = f"The {self.head or self.name} of a model less that of the baseline."
        usual = {"name": f"{self.name}_diff", "says": says, "commands": ("compare",), "head": "", "better": 0}
        return replace(self, kinds=(DIFFERENCE,), may=(), **{**usual, **others})


_EVALUATED = partial(Metric, commands=("eval",))
_BOXES = partial(Metric, commands=("eval --boxes",), better=HIGHER, kinds=(CLASS, BOXES))
_COCO, _VOC = "pycocotools cocoeval.py (COCO)", "VOCdevkit VOCevaldet.m; Diag-HOI 4.1 (its rule)"
_RECALL = partial(
    Metric, commands=("recall",), better=HIGHER, needs=("constraint",),
    settings=("protocol", "data", "gt", "constraint"),
)  # fmt: skip
_REPAIRED = partial(Metric, commands=("diagnose",), better=0, needs=("oracle",))
_PAIRS = partial(Metric, commands=("pairstats",), needs=("nms", "det_threshold"), may=("reason",))
_CURVES = partial(Metric, source="", commands=("curves",))
_BINNED = partial(
    _CURVES, source="Guo et al. 2017, On Calibration of Modern Neural Networks, 2", kinds=(BIN, CLASS, MEAN),
    settings=("protocol", "data", "gt", "bins"),
)  # fmt: skip
_SHOE = partial(
    Metric, source="SHOE supplement, Algorithms 1 and 2", commands=("shoe-eval", "compare"),
    settings=("protocol", "data", "gt", "sim", "delta", "against", "combine", "ap", "ties"),
)  # fmt: skip
_ANSWERS = partial(
    Metric, source="ChelsieLei/CrossHOI-Bench", commands=("vlm-eval",), better=HIGHER, may=("setting",),
    settings=("protocol", "gt"),
)  # fmt: skip
_FOUND = partial(_ANSWERS, source="SIT-AIGCDesignLab/hoi-benchmarks", may=())
_STUDY = partial(
    Metric, source="SHOE supplement, 5.3 and 6", commands=("agree",), better=0, kinds=(RATERS,), may=("reason",),
    settings=("protocol", "levels"),
)  # fmt: skip
_CORRUPTED = partial(
    Metric, source="RoHOI 3 (arXiv 2507.09111)", commands=("robust",), kinds=(GRID,),
    settings=("protocol", "of", "grid", "recipe"),
)  # fmt: skip

_MAP = _EVALUATED(
    "mAP", "The mean over the classes of a subset of their AP.", "Chao et al. 2018 (HICO-DET), 5", words="mAP",
    head="mAP", commands=("eval", "compare", "claim", "diagnose", "curves", "pairstats", "audit"), kinds=(CLAIM, MEAN),
    may=("oracle", "nms", "det_threshold", "reason"), better=HIGHER,
)  # fmt: skip
_SOFT = (
    _SHOE("soft_map", "The mean over classes of the area under the curve of soft precision and recall.",
          words="soft mAP", head="SHOE-mAP", better=HIGHER),
    _SHOE("mf1", "The mean over classes of F1, where a match counts by how similar its senses are.",
          words="mF1", head="SHOE mF1", better=HIGHER),
    _SHOE("gt_miss_rate", "The share of ground truth that no prediction is matched with.",
          words="GT miss rate", head="GT miss", better=LOWER),
    _SHOE("prediction_miss_rate", "The share of predictions that no ground truth is matched with.",
          words="prediction miss rate", head="Pred. miss", better=LOWER),
    _SHOE("map", "mAP of the same predictions where only the same senses match.", words="plain mAP", head="mAP",
          better=HIGHER),
)  # fmt: skip
_COUNT = Metric(
    "count", "How many predictions are errors of a type, or true positives; of missed_gt, how much ground truth.",
    "Diag-HOI 3.1", ("diagnose",), units=("predictions", "triplets"), kinds=(CLASS, MEAN), needs=("error",), better=0,
)  # fmt: skip
_GAIN = _REPAIRED("delta_mAP", "The mAP that is gained by repairing the errors of a type.", "Diag-HOI 3.3")

_DECLARED = (
    # eval
    _MAP,
    _EVALUATED("mean_max_recall", "The mean over classes of the largest recall, whatever the scores.",
               "YueLiao/CDN hico_eval.py", commands=("eval", "compare", "diagnose"), may=("oracle",), better=HIGHER),
    _EVALUATED("AP", "The average precision of a class; of boxes, the mean over labels and IoU 0.50 to 0.95.",
               f"Chao et al. 2018 (HICO-DET), 5; {_COCO}", commands=("eval", "eval --boxes", "diagnose", "curves"),
               kinds=(CLASS, BOXES), may=("oracle",), better=HIGHER),
    _EVALUATED("max_recall", "The largest recall of a class, whatever the scores.", "YueLiao/CDN hico_eval.py",
               kinds=(CLASS,), better=HIGHER),
    _EVALUATED("mPD", "How far the AP of a verb's classes stays below its best one: (best - mean) / best, over verbs.",
               "Foruck/OC-Immunity HICO_DET_utils.py", better=LOWER),
    _EVALUATED("hm", "The harmonic mean of the mAP of the unseen and of the seen classes of a split; 0 if one is 0.",
               "mlvlab/VDRP main_tip_finetune.py; ltttpku/CMMP Readme.md", words="harmonic mean", head="HM",
               settings=("protocol", "data", "gt", "split"), better=HIGHER),
    # eval --boxes
    _BOXES("AP50", "AP of boxes at IoU 0.50.", _COCO),
    _BOXES("AP75", "AP of boxes at IoU 0.75.", _COCO),
    *(_BOXES(f"AP_{size}", f"AP of {size} boxes.", _COCO) for size in ("small", "medium", "large")),
    *(_BOXES(f"AR@{k}", f"Recall of boxes, of the {k} best of a label in an image, over IoU 0.50 to 0.95.", _COCO)
      for k in (1, 10, 100)),
    *(_BOXES(f"AR_{size}", f"Recall of {size} boxes.", _COCO) for size in ("small", "medium", "large")),
    _BOXES("recall50", "Recall of boxes at IoU 0.50.", _VOC),
    # recall
    _RECALL("R@{k}", "The share of an image's triplets that are among its k best predictions, over images; of a verb, "
            "the share of its triplets.", "Lu et al. 2016; Maelic/SGG-Benchmark METRICS.md", kinds=(CLASS, MEAN)),
    _RECALL("mR@{k}", "R@k of each verb, over verbs.", "Maelic/SGG-Benchmark METRICS.md"),
    _RECALL("zR@{k}", "R@k of the triplets that training has not seen.", "Maelic/SGG-Benchmark METRICS.md",
            settings=("protocol", "data", "gt", "constraint", "split")),
    _RECALL("F1@{k}", "The harmonic mean of R@k and mR@k.", "Maelic/SGG-Benchmark METRICS.md"),
    _RECALL("R@K-relative", "R@K, where K is the number of an image's own triplets.", "Maelic/SGG-Benchmark METRICS.md",
            kinds=(CLASS, MEAN)),
    _RECALL("mR@K-relative", "R@K-relative of each verb, over verbs.", "Maelic/SGG-Benchmark METRICS.md"),
    # diagnose
    _COUNT,
    _GAIN,
    _REPAIRED("progressive_mAP", "mAP after repairing types of errors one after another.", "Diag-HOI 3.4, Eq. 4",
              needs=("oracle", "step"), settings=("protocol", "data", "gt", "order")),
    _REPAIRED("progressive_delta_mAP", "The mAP that a step of such repairs adds.", "Diag-HOI 3.4, Eq. 5",
              needs=("oracle", "step"), settings=("protocol", "data", "gt", "order")),
    _REPAIRED("delta_AP", "The AP that a class gains by repairing the errors of a type.", "Diag-HOI 3.3",
              kinds=(CLASS,)),
    # pairstats
    _PAIRS("pairs_per_image", "Detected pairs of person and object in an image.", "Diag-HOI 4.1",
           words="pairs an image", head="Pairs", units=("pairs",), better=0),
    _PAIRS("pair_recall", "The share of annotated pairs that some detected pair finds.",
           "Diag-HOI 4.1; neu-vi/Diag-HOI pair_localization.py", words="pair recall", head="Recall", better=HIGHER),
    # The paper does not say which pairs a precision in a group is over, and its code has no groups; its Table 4 has the
    # former (SCG 0.16 rare, 3.60 non-rare, 3.7 all).
    _PAIRS("pair_precision", "The share of detected pairs that find an annotated pair first.",
           "Diag-HOI 4.1; neu-vi/Diag-HOI pair_localization.py", words="pair precision", head="Precision",
           better=HIGHER, constants={"among": "all-pairs"}),
    _PAIRS("pair_precision_own_images", "The same, of the detected pairs of images that have a pair of the subset.",
           "", words="pair precision in a group's own images", better=HIGHER, constants={"among": "own-images"}),
    _PAIRS("neg_ap", "AP of saying that a pair does not interact.", "Diag-HOI 4.2.1", words="negative AP",
           head="Neg. AP", settings=("protocol", "data", "gt", "recall"), better=HIGHER),
    _PAIRS("neg_share", "The share of detected pairs that do not interact: the neg_ap of a random order.", "",
           words="share of negatives", better=0),
    _PAIRS("interactiveness_ap", "AP of finding the pairs that interact, whatever they do.",
           "enlighten0707/Body-Part-Map-for-Interactiveness binary_evaluation.py", words="interactiveness AP",
           settings=("protocol", "data", "gt", "recall"), better=HIGHER),
    _PAIRS("inter_map", "mAP over verbs, by the scores of verbs, on pairs whose boxes are right.", "Diag-HOI 4.2.2",
           words="interaction mAP", head="Inter. mAP", settings=("protocol", "data", "gt", "recall"), better=HIGHER),
    # curves
    _CURVES("mean_precision", "The mean over classes of the highest precision at a recall or more.", kinds=(LEVEL,),
            better=0),
    _CURVES("best_f1", "The highest F1 that a threshold of the scores has.", kinds=(POINT,), better=0),
    _CURVES("precision", "The share of the predictions above a threshold that are right.", kinds=(POINT,), better=0),
    _CURVES("recall", "The share of ground truth that the predictions above a threshold find.", kinds=(POINT,),
            better=0),
    _BINNED("ece", "How far scores are from the share of right predictions, in 10 bins.", kinds=(CLASS, MEAN),
            may=("reason",), better=LOWER),
    _BINNED("accuracy", "The share of right predictions.", better=0),
    _BINNED("confidence", "The mean score of predictions.", better=0),
    # confusion
    Metric("confusion", "How often a name is predicted where another is annotated.", "", ("confusion",),
           units=("pairs", "predicted pairs", "predictions", "triplets"), kinds=(CONFUSION,), better=0),
    Metric("confusion_share", "Its share of all that are annotated (or predicted) so.", "", ("confusion",),
           kinds=(CONFUSION,), better=0),
    Metric("confusion_delta_mAP", "The mAP that is gained by repairing it.", "", ("confusion",), kinds=(CONFUSION,),
           better=0),
    # audit
    Metric("candidates", "How many places of the ground truth may be wrong.", "", ("audit",), units=("candidates",),
           kinds=(COUNT_OF_CANDIDATES,), settings=("protocol", "data", "gt", "audit"), better=0),
    Metric("candidate", "A place of the ground truth that may be wrong, and how surely; of doubles, their IoU.", "",
           ("audit",), units=("ratio",), kinds=(CANDIDATE,), settings=("protocol", "data", "gt", "audit"), better=0),
    Metric("audit_delta_mAP", "The mAP that mending the ground truth adds.", "", ("audit",), kinds=(CHANGE,),
           settings=("protocol", "data", "gt", "audit"), better=0),
    # compare
    _MAP.difference(),
    Metric("AP_diff", "The AP of a class of a model less that of the baseline.", _MAP.source, ("compare",),
           kinds=(DIFFERENCE,), needs=("verb",), better=0),
    Metric("image_diff", "The part of the difference in mAP that goes with an image.", "", ("compare",),
           kinds=(IMAGE,), better=0),
    _COUNT.difference(),
    _GAIN.difference(),
    Metric("classes_better", "How many classes are better than the baseline's at q < 0.05.",
           "Benjamini and Hochberg 1995", ("compare",), units=("classes",), kinds=(COUNT_OF_CLASSES,), better=0),
    Metric("classes_worse", "How many classes are worse than the baseline's at q < 0.05.",
           "Benjamini and Hochberg 1995", ("compare",), units=("classes",), kinds=(COUNT_OF_CLASSES,), better=0),
    *(metric.difference() for metric in _SOFT),
    # shoe-eval
    *_SOFT,
    _SHOE("soft_ap", "The area under a class's curve of soft precision and recall.", commands=("shoe-eval",),
          kinds=(CLASS,), better=HIGHER),
    _SHOE("f1", "F1 of a class, where a match counts by how similar its senses are.", commands=("shoe-eval",),
          kinds=(CLASS,), better=HIGHER),
    _SHOE("ap", "AP of a class where only the same senses match.", commands=("shoe-eval",), kinds=(CLASS,),
          better=HIGHER),
    # vlm-eval
    _ANSWERS("macro_f1", "The mean over verbs of F1."),
    _ANSWERS("instance_f1", "The mean over questions of F1."),
    _ANSWERS("micro_f1", "F1 of all options together."),
    _ANSWERS("exact_match", "The share of questions whose answer is right as a whole."),
    _ANSWERS("precision", "The share of chosen options that are right."),
    _ANSWERS("recall", "The share of right options that are chosen."),
    _FOUND("AR", "Recall of pairs over the thresholds of IoU; of a size, of the pairs with such an object."),
    _FOUND("AR@0.5", "Recall of pairs at IoU 0.5."),
    _FOUND("AR@0.75", "Recall of pairs at IoU 0.75."),
    _FOUND("verb_similarity", "How similar the verb of the answer is to the annotated one."),
    # agree
    _STUDY("qwk", "Quadratic weighted kappa of two raters, or its mean over pairs of raters.", units=("kappa",)),
    _STUDY("alpha", "Krippendorff's alpha, by level of measurement.", units=("alpha",), needs=("level",)),
    _STUDY("ac1", "Gwet's AC1.", source="Gwet 2008", units=("ac",)),
    _STUDY("ac2", "Gwet's AC2, by quadratic weights.", source="Gwet 2014", units=("ac",)),
    _STUDY("within_sd", "The standard deviation of an item's ratings.", units=("levels",)),
    _STUDY("se", "The standard error of an item's mean rating.", units=("levels",)),
    _STUDY("agreement", "100 less the mean distance of a model from the mean of people, in percent of the scale."),
    _STUDY("agreement_mean", "Agreement, over subsets of models of one size.",
           settings=("protocol", "levels", "merge")),
    _STUDY("agreement_sd", "The standard deviation of agreement over subsets of models of one size.",
           settings=("protocol", "levels", "merge")),
    _STUDY("spearman", "Spearman's rho of a model and the mean of people.", units=("rho",), may=("p", "reason"),
           settings=("protocol", "levels", "permutations", "seed")),
    _STUDY("ci_low", "The lower end of rho's 95 % interval.", units=("rho",)),
    _STUDY("ci_high", "The upper end of rho's 95 % interval.", units=("rho",)),
    _STUDY("p", "The share of random orders whose rho is as far from 0.", units=("probability",),
           settings=("protocol", "levels", "permutations", "seed")),
    _STUDY("votes_{k}", "How often a rater gave this rating, by what most gave the item.", units=("ratings",)),
    _STUDY("rated_{k}", "How often a rater gave this rating.", units=("ratings",)),
    _STUDY("updated", "The share of ratings that a second study changed."),
    _STUDY("update_size", "By how much a second study changed ratings.", units=("levels",)),
    # robust
    _CORRUPTED("rank", "A model's place by MRI.", units=("models",), better=0),
    _CORRUPTED("clean", "The metric without corruption.", head="Clean", better=HIGHER),
    _CORRUPTED("mri", "The mean over corruptions of the mean over severities.", head="MRI", better=HIGHER),
    _CORRUPTED("cri", "MRI over the clean value, less where severities or corruptions differ.", head="CRI",
               units=("ratio",), better=HIGHER),
    _CORRUPTED("relative_drop", "What is lost of the clean value.", head="Drop (%)", better=LOWER,
               kinds=(GRID_PART, GRID)),
    _CORRUPTED("worst", "The lowest value of a corruption at a severity.", kinds=(GRID_PART,), better=0),
    _CORRUPTED("mean", "The mean of a part of the corrupted benchmark.", kinds=(GRID_PART,), better=0),
    _CORRUPTED("sigma", "The standard deviation over severities.", kinds=(GRID_PART,), better=LOWER),
    _CORRUPTED("cri_term", "What a corruption adds to CRI.", kinds=(GRID_PART,), units=("ratio",), better=HIGHER),
)  # fmt: skip


_ONCE = ((f"{metric.name} of {command}", metric) for metric in _DECLARED for command in metric.commands)
rows_by_name("_DECLARED (hoicli/records/metrics.py)", _ONCE)  # raises if a command has a name twice

METRICS: Mapping[str, tuple[Metric, ...]] = {
    name: tuple(metric for metric in _DECLARED if metric.name == name)
    for name in dict.fromkeys(m.name for m in _DECLARED)
}
"""The metrics of each name, in the order of the commands that print them: several where a name is of several kinds."""

_FAMILIES = {name: re.compile(name.replace("{k}", r"\d+")) for name in METRICS if "{k}" in name}


def metrics_of(command: str) -> list[Metric]:
    """Return the metrics that a command prints, in the order of their declaration, but mAP last, except for eval."""
    printed = [metric for metric in _DECLARED if command in metric.commands]
    if command == "eval":
        return printed
    return sorted(printed, key=lambda metric: metric.name == "mAP")


def explain_metrics(command: str) -> str:
    """Return a line for each metric that a command prints: its name, and what it is; for `--explain`."""
    metrics = metrics_of(command)
    width = max(len(metric.name) for metric in metrics)
    return "".join(f"{metric.name:<{width}}  {metric.says}\n" for metric in metrics)


@lru_cache(maxsize=4096)
def metrics_named(name: str) -> tuple[Metric, ...]:
    """Return the metrics under a row's name (`R@50` is declared as `R@{k}`); several if its rows may differ."""
    family = next((family for family, pattern in _FAMILIES.items() if pattern.fullmatch(name)), name)
    return METRICS.get(family, ())


def metric_rows() -> list[dict[str, Any]]:
    """Return a row for each metric, as `hoicli vocab --list metrics` prints it."""
    senses = {HIGHER: "higher", LOWER: "lower", 0: None}
    return [
        {
            "name": metric.name.replace("{k}", "K"),
            "commands": ", ".join(metric.commands),
            "says": metric.says,
            "unit": ", ".join(metric.units),
            "better": senses[metric.better],
            "source": metric.source or None,
            "about": ", ".join(kind.name for kind in metric.kinds),
            "signed": ", ".join((*metric.settings, *metric.constants)),
        }
        for metric in _DECLARED
    ]


def better_direction(name: str) -> int | None:
    """Return HIGHER or LOWER, whichever values of a metric are better; None if that is not known (0), or differs
    between the metrics of this name."""
    directions = {metric.better for metric in metrics_named(name)}
    if len(directions) != 1:
        return None
    return directions.pop() or None


def kind_of(row: Mapping[str, Any]) -> Kind:
    """Return the kind of any command's row: the first that fits of those its metric is declared with, else of
    UNDECLARED."""
    if "metric" not in row:
        return NO_VALUE
    declared = chain.from_iterable(metric.kinds for metric in metrics_named(str(row["metric"])))
    return next((kind for kind in (*declared, *UNDECLARED) if kind.fits(row)), MEAN)


@lru_cache(maxsize=4096)
def fault_of(name: str, keys: tuple[str, ...], unit: str, settings: frozenset[str]) -> str:
    """Return in which ways a row differs from the declaration of its metric; "" if in none. name, keys, unit, settings:
    of the row its metric, its keys, its unit, and the keys of its signature."""
    metrics = metrics_named(name)
    if not metrics:
        return "is of no declared metric; declare it in hoicli/records/metrics.py"
    row = dict.fromkeys(keys)
    fitting = ((metric, kind) for metric in metrics for kind in metric.kinds if kind.fits(row))
    metric, kind = next(fitting, (metrics[0], metrics[0].kinds[-1]))
    # COMMON: the keys of every row; ANYWHERE: those that any row may have
    needed = dict.fromkeys((*COMMON, *kind.needs, *metric.needs))
    allowed = {*needed, *kind.told_by, *kind.may, *metric.may, *ANYWHERE}
    faults = [f"lacks {key}" for key in needed if key not in row]
    if not kind.fits(row):
        faults.append(f"is no {' or '.join(kind.name for kind in metric.kinds)}")
    faults += [f"has {key}, which no {kind.name} of it has" for key in keys if key not in allowed]
    faults += [f"is not signed with {key}" for key in (*metric.settings, *metric.constants) if key not in settings]
    if unit not in metric.units:
        faults.append(f"is in {unit}, not in {' or '.join(metric.units)}")
    return "; ".join(faults)
