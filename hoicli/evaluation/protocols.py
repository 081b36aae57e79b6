"""The published evaluation protocols: one frozen row of settings for each, applied by `hoicli.evaluation.matching`.

docs/development.md says what a new row needs. Ground truth in records is 0-based inclusive; each row's shifts give the
coordinates that the released pipeline used.

A row's rules apply to any dataset (`selection.adapt_protocol`): the rows of HICO-DET to one without roles, those of
V-COCO to one with roles. What a row does to boxes because of HICO-DET's own file, or of the loader of a released code,
is left out there; the measure (pixels or edges, `>` or `>=`) stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from hoicli.evaluation.filters import Filters
from hoicli.evaluation.recall_grids import EVERY_RECALL, GRID_ARANGE, GRID_LINSPACE, GRID_TENTHS
from hoicli.evaluation.slices import Part
from hoicli.io.row_tables import check_row, rows_by_name
from hoicli.records import caveats

COUNTED_IMAGES = ("all", "boxes", "interactions")
"""The possible values of a protocol's `images`."""

Shift = tuple[float, float, float, float]
NO_SHIFT: Shift = (0.0, 0.0, 0.0, 0.0)
ALL_BY_ONE: Shift = (1.0, 1.0, 1.0, 1.0)
FAR_EDGES: Shift = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Protocol:
    """What one released evaluator does (or a paper's text says), as data. Defaults are the most common choices.

    A "view" of a protocol is the protocol with another IoU threshold, or on one part of the data (`--iou`, `--slice`);
    it is a `Protocol`, too, and sets the last five fields.

    name, title, source: its name, a short description, and the file it was read from.
    dataset: the name of the vocabulary it belongs to. roles: its classes are actions with roles.
    classes: the interactions it scores, a key of the vocabulary's `subsets`; "" is all of them.
    subsets: what is averaged, keys of the vocabulary's `subsets`; none is `full` and the frequency groups.
    person_first: a prediction belongs to the annotated person its subject overlaps most, with any action.
    any_object_when_none: if a person's role has no object, any predicted object is right; otherwise only none is.
    inclusive, touching_overlap, inclusive_overlap, union_margin: the IoU convention (`records.boxes.iou`).
    prediction_shift, truth_shift: added to x1, y1, x2, y2 of each side before comparing.
    last_pixel_shift: also added to predictions whose record says that x2, y2 is the last pixel (`caveats`).
    threshold: the overlap that a true positive needs; strict: it needs more than that, not at least that.
    person_subject: a triplet whose subject box is not labelled person (a label of `subjects`) belongs to no class.
    triplets_per_image: only this many best predictions of an image count, those without a class included.
    predictions_per_class: only this many best predictions of a class count, over the whole dataset.
    known_object: a prediction counts only in images with an image-level label for its object.
    drop_no_interaction: `no_interaction` is removed from both sides first, and its classes leave the mean.
    images: "all", or only those that annotate "boxes" or "interactions": elsewhere false positives never count.
    only_annotated_classes: the mean leaves out classes without ground truth (otherwise they count 0).
    every_overlap: a prediction takes all ground truth that it overlaps enough, and is right if some of it is free;
    otherwise only the one with the largest overlap.
    first_free: a prediction takes the first ground truth, in the annotations' order, that it overlaps enough and that
    no better-scored prediction has taken.
    same_subject: a subject matches only a ground-truth subject of the same label.
    by_verb: the classes are the verbs: the triplets of a verb are ranked together, whatever their objects.
    pairs_only: triplets without an object box do not count on either side, and objects of any label are compared, in a
    dataset with roles (V-COCO).
    whole_image: a class is right or wrong in an image, boxes aside: the image's score is its best triplet's.
    grid: the recall values at which interpolated precision is read, or EVERY_RECALL.
    remark: anything else to know, for `--explain`.
    changed: the settings that differ from the published row, as (key, value) pairs of a signature: ("iou", "0.75").
    view: what identifies this view in result rows, as (tag, value) pairs with the tags iou, slice and part.
    part: the part of the data that counts, None for all.
    mean_of: if this view is the mean over several thresholds, their `key`s; such a view is not matched itself.
    filters: the filters that this view uses in place of those given with the command, None for the latter."""

    name: str
    title: str
    source: str
    grid: tuple[float, ...]
    dataset: str = "hico"
    roles: bool = False
    classes: str = ""
    subsets: tuple[str, ...] = ()
    person_first: bool = False
    any_object_when_none: bool = False
    threshold: float = 0.5
    inclusive: bool = False
    touching_overlap: bool = True
    inclusive_overlap: bool = False
    union_margin: float = 0.0
    prediction_shift: Shift = NO_SHIFT
    truth_shift: Shift = NO_SHIFT
    last_pixel_shift: Shift = NO_SHIFT
    strict: bool = False
    person_subject: bool = False
    triplets_per_image: int | None = None
    predictions_per_class: int | None = None
    known_object: bool = False
    drop_no_interaction: bool = False
    images: str = "all"
    only_annotated_classes: bool = False
    every_overlap: bool = False
    first_free: bool = False
    same_subject: bool = False
    by_verb: bool = False
    pairs_only: bool = False
    whole_image: bool = False
    remark: str = ""
    changed: tuple[tuple[str, str], ...] = ()
    view: tuple[tuple[str, str], ...] = ()
    part: Part | None = None
    mean_of: tuple[str, ...] = ()
    filters: Filters | None = None

    def __post_init__(self) -> None:
        """Check the fields that need no dataset. Raises `DeclarationError` that names the protocol and the field."""
        check_row(
            f"protocol {self.name}",
            ("threshold", 0 <= self.threshold <= 1, f"{self.threshold} is no IoU; give a number from 0 to 1"),
            ("images", self.images in COUNTED_IMAGES, f"{self.images!r}; choose {', '.join(COUNTED_IMAGES)}"),
        )

    @property
    def key(self) -> str:
        """A unique name within a run: the protocol's name, followed by the threshold, slice and part if it is a view,
        with | between them (`hico|0.75`)."""
        return view_key(self.name, dict(self.view))

    @cached_property
    def matching(self) -> Protocol:
        """The protocol with every setting that views change reset to a default. All views of a protocol are equal in
        this, so it serves as the key of what they share: which ground truth each prediction may match, and the IoU."""
        return replace(
            self, threshold=0.5, only_annotated_classes=False, changed=(), view=(), part=None, mean_of=(), filters=None
        )

    @property
    def iou_key(self) -> tuple[bool, bool, bool, float, Shift, Shift, Shift]:
        """The settings that the IoU of two boxes depends on. Protocols of equal keys share computed IoU values."""
        shifts = (self.prediction_shift, self.truth_shift, self.last_pixel_shift)
        return (self.inclusive, self.touching_overlap, self.inclusive_overlap, self.union_margin, *shifts)

    @property
    def depends_on(self) -> int:
        """The caveats that affect this protocol's numbers, as a bit mask (`caveats.mask`). A caveat is a fact about
        where records came from, such as image-level labels that were derived from pairs."""
        concerned = {
            caveats.DERIVED_LABELS: self.known_object or self.whole_image,
            caveats.UNMARKED_AMBIGUOUS: self.whole_image,
            caveats.WHOLE_IMAGE: self.whole_image,
            caveats.PAIRS_ONLY: self.roles and not self.pairs_only,
            caveats.UNMARKED_PEOPLE: self.person_first,
            caveats.LAST_PIXELS: self.last_pixel_shift != NO_SHIFT,
            caveats.BY_TOKENS: True,
            caveats.ALL_ONES: True,
        }
        return caveats.mask(name for name, concerns in concerned.items() if concerns)

    @property
    def refuses(self) -> int:
        """The caveats that rule this protocol out, as a bit mask (`caveats.mask`): with records that have one of them,
        its numbers would mean something else.

        PAIRS_ONLY: the official V-COCO code also counts people who act without an annotated object (s-gupta/v-coco
        vsrl_eval.py, `npos`), and ground truth of pairs lacks those. WHOLE_IMAGE: there are no boxes to match."""
        refused = {caveats.PAIRS_ONLY: self.person_first, caveats.WHOLE_IMAGE: not self.whole_image}
        return caveats.mask(name for name, refuses in refused.items() if refuses)

    def settings(self) -> dict[str, str]:
        """Return the settings for signatures that say how this differs from the published protocol: {"iou": "0.75"}."""
        return dict(self.changed)


def view_key(name: str, view: Mapping[str, str]) -> str:
    """Return the `Protocol.key` of a view: its protocol's name and the values of iou, slice and part, joined by |."""
    return "|".join([name, *view.values()])


_VSRL = "s-gupta/v-coco vsrl_eval.py"
_official_vcoco = partial(
    Protocol,
    dataset="vcoco",
    roles=True,
    grid=EVERY_RECALL,
    person_first=True,
    inclusive=True,
    only_annotated_classes=True,
)
"""The settings that the three official V-COCO rows share."""
_official_roles = partial(_official_vcoco, source=f"{_VSRL} _do_role_eval", classes="25", subsets=("24", "25"))
"""The settings that the two of its role AP share."""

_HO_RCNN = "ywchao/ho-rcnn evaluation/eval_one.m"
# The MATLAB code reads 1-based ground truth and makes 0-based predictions 1-based.
_official_hico = partial(
    Protocol, grid=GRID_ARANGE, inclusive=True, prediction_shift=ALL_BY_ONE, truth_shift=ALL_BY_ONE
)
"""The settings that the two official HICO-DET rows share."""
_hico_images = partial(
    Protocol,
    source="ywchao/hico_benchmark evaluation/eval_vo.m, utils/eval_pr_score_label.m",
    grid=GRID_ARANGE,
    subsets=("full",),  # HICO-DET's rare and non-rare are of training boxes
    whole_image=True,
    remark="an image without a triplet of a class is not ranked for it; the released code ranks every image",
)
"""The settings that the two rows of HICO's image-level benchmark share."""
_query_based = partial(
    Protocol,
    grid=GRID_ARANGE,
    inclusive=True,
    touching_overlap=False,
    truth_shift=ALL_BY_ONE,  # they compare 1-based ground truth with 0-based predictions
    person_subject=True,
    triplets_per_image=100,
    only_annotated_classes=True,
)
"""The settings that the rows of QPIC's evaluator and of its copies share."""
_ggnet = partial(
    Protocol,
    source="SherlockHolmes221/GGNet src/lib/eval/hico_eval_de_ko.py",
    grid=GRID_ARANGE,
    inclusive=True,
    touching_overlap=False,
    union_margin=1e-6,
    strict=True,
    first_free=True,
    triplets_per_image=100,  # by cjw2021/QAHOI datasets/hico_eval.py; GGNet's network predicts no more
    only_annotated_classes=True,
)
"""The settings that the two rows of GGNet's evaluator share. Its ground truth, anno_list.json, is 0-based as records
are."""
_diag = partial(
    Protocol,
    inclusive=True,
    touching_overlap=False,
    truth_shift=ALL_BY_ONE,
    person_subject=True,
    drop_no_interaction=True,
    images="interactions",  # the code's dumps hold the 8,528 test images that have some
    only_annotated_classes=True,
)
"""The settings that the rows of Diag-HOI's code and of its paper share."""
_MATLAB_GRID = "were MATLAB's 0:0.1:1 read as a vector, the grid would be linspace"
_GGNET_EMPTY = "the released mean has a 0 for a class with neither ground truth nor predictions (none on the test set)"
_SUBJECTS = "ground truth whose subject is no person is never found here; the released code finds it"

_ROWS = (
    _official_hico(
        name="hico",
        title="HICO-DET official, Default setting",
        source=f"{_HO_RCNN}, mode def",
        remark=_MATLAB_GRID,
    ),
    _official_hico(
        name="hico-ko",
        title="HICO-DET official, Known Object setting",
        source=f"{_HO_RCNN}, mode ko",
        known_object=True,
        remark=f"without image-level labels they are derived from the pairs (labels:derived); {_MATLAB_GRID}",
    ),
    _query_based(
        name="qpic",
        title="QPIC, CDN in training and --eval",
        source="hitachi-rd-cv/qpic datasets/hico_eval.py",
        images="boxes",  # elsewhere it looks up a list among tuples and never finds it
        remark=_SUBJECTS,
    ),
    _query_based(
        name="gen-vlkt",
        title="GEN-VLKT, HOICLIP, EoID in training and --eval",
        source="YueLiao/gen-vlkt datasets/hico_eval_triplet.py",
        remark="as qpic, but false positives on images without boxes count; HOICLIP's code leaves classes without "
        "predictions out of rare and non_rare",
    ),
    _ggnet(name="ggnet", title="GGNet, QAHOI, SOV-STG, FGAHOI, Default setting", remark=_GGNET_EMPTY),
    _ggnet(
        name="ggnet-ko",
        title="GGNet, QAHOI, SOV-STG, FGAHOI, Known Object setting",
        known_object=True,
        remark="image-level labels as hico-ko; the file of its own, file_name_to_obj_cat.json, is in no repository; "
        + _GGNET_EMPTY,
    ),
    Protocol(
        name="upt",
        title="SCG, UPT, PViC (pocket)",
        source="fredzzhang/pocket BoxPairAssociation, DetectionAPMeter 11P",
        grid=GRID_LINSPACE,
        truth_shift=FAR_EDGES,  # it subtracts 1 from x1 and y1 of the 1-based source
        last_pixel_shift=FAR_EDGES,  # its cache_hico takes 1 off x2 and y2, its test_hico scores them with it
        strict=True,
        remark="its loader skips images without pairs, so false positives there never count; a file of a "
        'protocol does the same with "like": "upt", "images": "interactions"',
    ),
    _diag(
        name="diag",
        title="Diag-HOI, as its code has it",
        source="neu-vi/Diag-HOI standard_eval.py",
        grid=GRID_ARANGE,
        remark="the paper's AP is the area under the curve, and an IoU of exactly 0.5 is wrong (diag-paper); "
        + _SUBJECTS,
    ),
    _diag(
        name="diag-paper",
        title="Diag-HOI, as its paper defines mAP",
        source="Diag-HOI section 2.3; boxes as neu-vi/Diag-HOI standard_eval.py compares them",
        grid=EVERY_RECALL,
        strict=True,
        remark="the paper's tables are of its code: diag",
    ),
    Protocol(
        name="inp-cc",
        title="THID, CMD-SE, INP-CC",
        source="ltttpku/INP-CC datasets/hico_evaluator.py",
        grid=GRID_TENTHS,
        truth_shift=ALL_BY_ONE,  # it compares 1-based ground truth with 0-based predictions
        predictions_per_class=19_999,
    ),
    Protocol(
        name="swig",
        title="THID, CMD-SE, INP-CC on SWIG-HOI",
        source="ltttpku/INP-CC datasets/swig_evaluator.py",
        dataset="swig",
        classes="evaluated",  # 5,539 of the 14,130
        grid=GRID_TENTHS,
        predictions_per_class=19_999,
    ),
    _official_vcoco(
        name="vcoco-agent", title="V-COCO official, agents", source=f"{_VSRL} _do_agent_eval", classes="agent"
    ),
    _official_roles(name="vcoco-s1", title="V-COCO official, scenario 1"),
    _official_roles(name="vcoco-s2", title="V-COCO official, scenario 2", any_object_when_none=True),
    Protocol(
        name="vcoco-qpic",
        title="QPIC, CDN, GEN-VLKT on V-COCO in training",
        source="hitachi-rd-cv/qpic datasets/vcoco_eval.py",
        dataset="vcoco",
        roles=True,
        classes="29",
        subsets=("24", "29"),
        grid=GRID_ARANGE,
        inclusive=True,
        touching_overlap=False,
        truth_shift=FAR_EDGES,  # its ground truth is x + w, y + h
        triplets_per_image=100,
        only_annotated_classes=True,
    ),
    Protocol(
        name="vcoco-pvic",
        title="PViC on V-COCO in training",
        source="fredzzhang/pvic utils.py test_vcoco",
        dataset="vcoco",
        roles=True,
        classes="24",
        subsets=("24",),
        grid=GRID_LINSPACE,
        truth_shift=FAR_EDGES,  # its ground truth is x + w, y + h
        strict=True,
        pairs_only=True,
        images="interactions",  # its loader skips images without pairs
    ),
    Protocol(
        name="hoia",
        title="HOI-A, HOI-W: mean AP of the verbs (PPDM, AS-Net)",
        source="YueLiao/PPDM src/lib/eval/hoia_eval.py",
        dataset="hoia",
        grid=EVERY_RECALL,
        truth_shift=FAR_EDGES,  # its ground truth is x + w, y + h
        every_overlap=True,
        same_subject=True,
        by_verb=True,
    ),
    Protocol(
        name="ambiguous-hoi",
        title="Ambiguous-HOI (DJ-RN)",
        source="DirtyHarryLYL/DJ-RN -Results/Evaluate_ambiguous.py",
        dataset="ambiguous-hoi",
        classes="ambiguous",  # 87 of the 600
        subsets=("ambiguous",),
        grid=GRID_TENTHS,
        remark="the released mean leaves out classes of objects without any prediction; here they count 0",
    ),
    _hico_images(name="hico-image", title="HICO image-level classification, Default setting"),
    _hico_images(
        name="hico-image-ko", title="HICO image-level classification, Known Object setting", known_object=True
    ),
)
PROTOCOLS = rows_by_name("_ROWS (hoicli/evaluation/protocols.py)", ((row.name, row) for row in _ROWS))
"""The published protocols by name."""
