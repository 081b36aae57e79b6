"""Everything that hoicli reads: a row a reader, with a sound file to begin from and command lines that read it.

A new command or format needs a row here (or a word in READS_NOTHING): tests/hostile/test_readers.py compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import tests.foreign
from tests.support.project import FIXTURES

CORPUS = Path(__file__).parent / "corpus"
FOREIGN, VCOCO, SWIG, SHOE = FIXTURES / "foreign", FIXTURES / "vcoco", FIXTURES / "swig", FIXTURES / "shoe"
WORDNET, SENSES = CORPUS / "wordnet", CORPUS / "wordnet_pairs.jsonl"
GRAPHS, OWN, CHOICE = FIXTURES / "graphs", FIXTURES / "own", FIXTURES / "choice"
PREDICTIONS_B = CORPUS / "predictions_b.jsonl"
GT, PREDICTIONS, MATCHES = FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl", FIXTURES / "expected/matches.jsonl"

READS_NOTHING = {
    "data": "keeps what convert reads, by convert's own readers",
    "doctor": "looks at its own files",
}
"""Commands without a reader of their own, and why that is so."""

LINES = "lines"
"""An accepted stream has a line out for every line in, but for those it says it skipped."""
ITEMS = "items"
"""An accepted list has a record for every item, but for those it says it skipped or left out."""
TRUTH = "truth"
"""An accepted ground truth has a line for every image, whatever the predictions."""


@dataclass(frozen=True)
class Reader:
    """Something that is read.

    name: command:format or command:role; seed: a sound file; kind: a key of mutations.STRUCTURE; calls: command lines,
    one of which is taken, in which IN is the broken file, OUT where -o goes, DIR the folder of both (with CORPUS' two
    pictures in `images`). file: the broken file's name in DIR; beside: sound files copied there, too. records: whether
    the output is image records; law: LINES, ITEMS, TRUTH or none. stdin: IN is read from there.
    """

    name: str
    seed: Path
    kind: str
    calls: Sequence[str]
    file: str = ""
    beside: Callable[[], dict[str, Path]] = dict
    records: bool = False
    law: str = ""
    stdin: bool = False

    @property
    def command(self) -> str:
        """The command that reads."""
        return self.name.split(":")[0]


def _convert(
    name: str, seed: Path, kind: str, *options: str, law: str = "", detected: bool = True, **more: object
) -> Reader:
    """A format, read by name and (if it is `detected` without more) by detection, strictly and under skip; or with each
    of the options, where it needs some."""
    format_ = name.split("/")[0]
    calls = [f"convert --from {format_} IN -o OUT", "convert IN -o OUT"] if detected else []
    calls += [f"convert --from {format_} {option} IN -o OUT" for option in options]
    calls += [f"{call} --on-error skip" for call in calls]
    return Reader(f"convert:{name}", seed, kind, calls, records=True, law=law, **more)  # type: ignore[arg-type]


def _vsrl(role: str, seed: Path, kind: str, own: str) -> Reader:
    names = {
        "vcoco_test.json": VCOCO / "vcoco_test.json",
        "instances.json": VCOCO / "instances.json",
        "test.ids": VCOCO / "test.ids",
    }
    others = {name: path for name, path in names.items() if name != own}
    paths = " ".join(["IN", *(f"DIR/{name}" for name in others)])
    calls = [f"convert {paths} -o OUT", f"convert --from vsrl {paths} -o OUT --on-error skip"]
    return Reader(f"convert:vsrl/{role}", seed, kind, calls, file=own, beside=lambda: others, records=True)


def _folder_of_mat() -> dict[str, Path]:
    return {f"mats/{path.name}": path for path in (FOREIGN / "detections_mat").iterdir() if "_05" not in path.name}


def _wordnet_but_for(own: str) -> dict[str, Path]:
    others = (path for path in WORDNET.rglob("*.*") if path.relative_to(WORDNET).as_posix() != own)
    return {f"wordnet/{path.relative_to(WORDNET).as_posix()}": path for path in others}


def _predictions(command: str, *options: str, law: str = "", gt: Path = GT) -> list[Reader]:
    """A command that reads predictions beside a ground truth: each of them broken in turn."""
    preds = PREDICTIONS if gt == GT else gt.with_name("predictions.jsonl")
    tails = [f"{option} --on-error {policy}" for option in options or ("",) for policy in ("stop", "skip")]
    of = "" if gt == GT else f" {gt.parent.name}"
    return [
        Reader(
            f"{command}:predictions{of}",
            preds,
            "jsonl",
            [f"{command} --gt {gt} IN -o OUT {tail}" for tail in tails],
            law=law,
        ),
        Reader(
            f"{command}:ground truth{of}",
            gt,
            "jsonl",
            [f"{command} --gt IN {preds} -o OUT {tail}" for tail in tails],
            law=law,
        ),
    ]


def _picture_of(command: str) -> Reader:
    """A command that draws on the pictures of a folder, one of which is broken."""
    name = "HICO_test2015_00000001.jpg"
    calls = {
        "explore": f"explore --gt {GT} --images DIR/images --pictures copy {PREDICTIONS} -o DIR/explorer",
        "show": f"show --gt {GT} --images DIR/images {PREDICTIONS} -o DIR/drawn",
    }
    pictures = {f"images/{path.name}": path for path in (FIXTURES / "images").iterdir() if path.name != name}
    return Reader(
        f"{command}:JPEG",
        FIXTURES / "images" / name,
        "jpeg",
        _both(calls[command]),
        file=f"images/{name}",
        beside=lambda: pictures,
    )


def _both(*calls: str) -> list[str]:
    return [f"{call} --on-error {policy}" for call in calls for policy in ("stop", "skip")]


def _asked(questions: object, *answers: object) -> list[str]:
    """Questions and each of the answers, strictly, under skip, and as released."""
    calls = [f"vlm-eval --questions {questions} {given} -o OUT" for given in answers]
    return _both(*calls, *(f"{call} --as-released crosshoi-bench --bootstrap 5" for call in calls))


_OWN_PAIR = f"--gt {OWN / 'gt.jsonl'} {OWN / 'predictions.jsonl'} -o OUT"

READERS: list[Reader] = [
    # the file of a dataset
    Reader(
        "vocab:dataset",
        OWN / "site.json",
        "json",
        [
            "vocab IN -o OUT",
            "vocab IN --list objects -o OUT",
            f"eval --dataset IN {_OWN_PAIR}",
            f"eval --dataset IN --protocol all --per-class {_OWN_PAIR}",
            f"match --dataset IN {_OWN_PAIR}",
            f"diagnose --dataset IN {_OWN_PAIR}",
            f"pairstats --dataset IN {_OWN_PAIR}",
            f"convert --dataset IN {OWN / 'results.json'} -o OUT",
            f"validate --dataset IN {OWN / 'predictions.jsonl'} -o OUT",
        ],
    ),
    Reader(
        "vocab:ground truth",
        OWN / "gt.jsonl",
        "jsonl",
        ["vocab --from IN -o OUT", f"vocab --from {OWN / 'gt.jsonl'} --train IN --name own -o OUT"],
    ),
    # convert
    _convert("records", PREDICTIONS, "records", law=LINES),
    Reader(
        "convert:records/to",
        PREDICTIONS,
        "jsonl",
        _both(
            *(f"convert --to {name} IN -o OUT" for name in ("cdn-json", "inpcc-json", "mat", "coco-rel --dataset hico"))
        ),
    ),
    Reader(
        "convert:records/to graphs", GRAPHS / "predictions.jsonl", "jsonl", _both("convert --to coco-rel IN -o OUT")
    ),
    Reader(
        "convert:records/to vcoco",
        VCOCO / "predictions.jsonl",
        "jsonl",
        _both("convert --to vcoco-pkl IN -o OUT", "convert --to vcoco-json IN -o OUT"),
    ),
    _convert("coco-rel", GRAPHS / "foreign/_annotations.coco.json", "json"),
    _vsrl("actions", VCOCO / "vcoco_test.json", "json", "vcoco_test.json"),
    _vsrl("instances", VCOCO / "instances.json", "json", "instances.json"),
    _vsrl("ids", VCOCO / "test.ids", "text", "test.ids"),
    _convert("qpic-vcoco", CORPUS / "qpic_vcoco.json", "json", law=ITEMS),
    _convert("ppdm-vcoco-gt", CORPUS / "ppdm_vcoco.json", "json"),
    _convert("pocket-vcoco", CORPUS / "pocket_vcoco.json", "json"),
    _convert("pocket", FOREIGN / "instances_test2015.json", "json"),
    _convert("hoia", FOREIGN / "test_hico.json", "json", law=ITEMS),
    _convert("hoia/hoi-a", CORPUS / "hoia.json", "json", "--dataset hoia", detected=False, law=ITEMS),
    _convert("ambiguous", CORPUS / "ambiguous.pkl", "pickle"),
    Reader(
        "convert:ambiguous/names",
        CORPUS / "ambiguous_names.pkl",
        "pickle",
        _both(f"convert {CORPUS / 'ambiguous.pkl'} IN -o OUT"),
        records=True,
    ),
    _convert("swig", SWIG / "foreign/swig_dev_1000.json", "json", law=ITEMS),
    Reader(
        "convert:hico-mat/boxes",
        FOREIGN / "anno_bbox.mat",
        "mat",
        _both("convert IN -o OUT", f"convert IN {FOREIGN / 'anno.mat'} -o OUT", "convert --part train IN -o OUT"),
        records=True,
    ),
    Reader(
        "convert:hico-mat/labels",
        FOREIGN / "anno.mat",
        "mat",
        _both(f"convert {FOREIGN / 'anno_bbox.mat'} IN -o OUT", "convert IN -o OUT"),
        records=True,
    ),
    _convert("no-frills", FOREIGN / "anno_list.json", "json"),
    _convert("vcoco", VCOCO / "predictions.json", "json"),
    _convert("vcoco/pickle", VCOCO / "foreign/vcoco_results.pkl", "pickle"),
    _convert("qpic-vcoco-list", CORPUS / "qpic_vcoco_list.json", "json", law=ITEMS),
    _convert("ppdm-vcoco-list", CORPUS / "ppdm_vcoco_list.json", "json"),
    _convert("cdn", FOREIGN / "cdn.json", "json", law=ITEMS),
    _convert("cdn/text in text", FOREIGN / "results.json", "json-string"),
    _convert("gen-vlkt", FOREIGN / "results_gen_vlkt.json", "json-string"),
    _convert("ppdm", FOREIGN / "predictions_ppdm.json", "json"),
    _convert("ppdm/hoi-a", CORPUS / "hoia_ppdm.json", "json", "--dataset hoia", detected=False),
    _convert("ican", CORPUS / "ican.pkl", "pickle", f"--image-list {GT}"),
    _convert("image-scores", CORPUS / "image_scores.npy", "npy", f"--image-list {GT}", detected=False),
    _convert("inpcc", FOREIGN / "inpcc.json", "json", f"--image-list {GT}"),
    _convert("inpcc/pickle", FOREIGN / "preds.pkl", "pickle", f"--image-list {GT}"),
    _convert(
        "mat",
        FOREIGN / "detections_mat/detections_05.mat",
        "mat",
        f"--image-list {GT}",
        detected=False,
        file="mats/detections_05.mat",
        beside=_folder_of_mat,
    ),
    _convert(
        "logits",
        FOREIGN / "logits.npz",
        "npz",
        f"--image-list {GT}",
        f"--image-list {GT} --lambda 1 --box-nms 0.5",
        "--activation softmax",
        "--threshold 0",
    ),
    _convert("diag-pairs", FOREIGN / "pairs.pkl", "pickle"),
    _convert(
        "vlm",
        FIXTURES / "vlm/answers.jsonl",
        "answers",
        "--coords 1000",
        "--coords 1000-yx",
        "--coords qwen2.5",
        "--coords relative --to-vocabulary",
        "--coords resized:640x480",
        detected=False,
    ),
    _convert(
        "vlm/forms",
        CORPUS / "vlm_forms.jsonl",
        "answers",
        "--coords 1000",
        "--coords relative --to-vocabulary",
        "--coords pixels --scores tokens",
        detected=False,
    ),
    _convert(
        "vlm/batch",
        CORPUS / "vlm_batch.jsonl",
        "answers",
        "--coords 1000",
        "--coords 1000 --scores tokens",
        detected=False,
    ),
    _convert("vlm/grounding", CORPUS / "vlm_grounding.json", "json", "--to-vocabulary"),
    _convert("vlm/hoi-r1", CORPUS / "vlm_hoi_r1.json", "json", f"--coords 1000 --image-list {GT}", detected=False),
    _convert("vlm/mllms", CORPUS / "vlm_mllms.json", "json", "--to-vocabulary", "--coords pixels", detected=False),
    Reader(
        "convert:--boxes",
        GT,
        "jsonl",
        _both(f"convert --from vlm --coords 1000 --boxes IN {FIXTURES / 'vlm/answers.jsonl'} -o OUT"),
        records=True,
    ),
    Reader(
        "convert:--image-list records",
        GT,
        "jsonl",
        _both(
            f"convert --image-list IN {FOREIGN / 'preds.pkl'} -o OUT",
            f"convert --image-list IN --from logits {FOREIGN / 'logits.npz'} -o OUT",
        ),
        records=True,
    ),
    Reader(
        "convert:--image-list list",
        CORPUS / "images.txt",
        "text",
        _both(
            f"convert --image-list IN {FOREIGN / 'inpcc.json'} -o OUT",
            f"convert --image-list IN {FOREIGN / 'detections_mat'} -o OUT",
        ),
        records=True,
    ),
    # records, and what is made of them
    *_predictions("eval", "", "--per-class --nms 0.7 --top-k 3", "--split rf-uc --format csv"),
    *_predictions("eval", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *_predictions("eval", "--dataset swig", gt=SWIG / "gt.jsonl"),
    # dumps that are not converted first
    Reader("eval:dump of predictions", FOREIGN / "cdn.json", "json", _both(f"eval --gt {GT} IN -o OUT")),
    Reader("eval:pickle", FOREIGN / "preds.pkl", "pickle", _both(f"eval --gt {GT} IN -o OUT")),
    Reader("match:pickle", FOREIGN / "preds.pkl", "pickle", _both(f"match --only-predicted --gt {GT} IN -o OUT")),
    Reader(
        "eval:dump of ground truth",
        FOREIGN / "instances_test2015.json",
        "json",
        _both(f"eval --gt IN {PREDICTIONS} -o OUT", f"diagnose --gt IN {PREDICTIONS} -o OUT"),
    ),
    Reader(
        "eval:two files in one",
        FOREIGN / "anno_bbox.mat",
        "mat",
        _both(f"eval --gt DIR/anno_bbox.mat,{FOREIGN / 'anno.mat'} {PREDICTIONS} -o OUT"),
        file="anno_bbox.mat",
    ),
    Reader("validate:dump", FOREIGN / "results.json", "json-string", [f"validate --gt {GT} IN -o OUT"]),
    Reader("eval:matches", MATCHES, "jsonl", _both("eval IN -o OUT")),
    *_predictions("match", "--protocol hico", law=TRUTH),
    *_predictions("match", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *_predictions("pairstats", "", "--format csv"),
    *_predictions("curves", "", "--per-class --points all --threshold 0.5", "--plot DIR/plot.svg"),
    *_predictions("confusion", "", "--top all --plot DIR/plot.svg"),
    *_predictions("audit", "", "--same 0.3 --confident 0 --known 0"),
    *_predictions("audit", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *(
        Reader(
            f"show:{role}",
            seed,
            "jsonl",
            _both(f"show {words} -o DIR/sheet.png", f"show {words} --score 0.5 --top all --size 64 -o DIR/drawn"),
        )
        for role, seed, words in (
            ("predictions", PREDICTIONS, f"--gt {GT} IN"),
            ("predictions alone", PREDICTIONS, "IN"),
            ("ground truth", GT, f"--gt IN {PREDICTIONS}"),
        )
    ),
    Reader("curves:matches", MATCHES, "jsonl", _both("curves IN -o OUT")),
    Reader("confusion:matches", CORPUS / "matches_diag.jsonl", "jsonl", _both("confusion IN -o OUT")),
    Reader("vlm-eval:choice questions", CHOICE / "pair.json", "json", _asked("IN", CHOICE / "saved.json", PREDICTIONS)),
    Reader("vlm-eval:choice questions scene", CHOICE / "scene.json", "json", _asked("IN", CHOICE / "answers.jsonl")),
    Reader("vlm-eval:choice text", CHOICE / "answers.jsonl", "answers", _asked(CHOICE / "scene.json", "IN")),
    Reader("vlm-eval:choice saved", CHOICE / "saved.json", "json", _asked(CHOICE / "pair.json", "IN")),
    Reader("vlm-eval:choice dump", CHOICE / "detector.json", "json", _asked(CHOICE / "pair.json", "IN")),
    Reader("vlm-eval:choice records", PREDICTIONS, "jsonl", _asked(CHOICE / "pair.json", "IN")),
    Reader(
        "vlm-eval:ground results",
        CHOICE / "grounded.json",
        "json",
        _both("vlm-eval IN -o OUT", "vlm-eval --match both --as-released hoi-benchmarks --bootstrap 5 IN -o OUT"),
    ),
    Reader(
        "vlm-eval:refer results",
        CHOICE / "referred.json",
        "json",
        _both("vlm-eval --dataset hico IN -o OUT", "vlm-eval --needed IN -o OUT"),
    ),
    *_predictions("recall", "", "--split rf-uc --per-class --bootstrap 5", "--as-released openpsg"),
    Reader("recall:training", GT, "jsonl", _both(f"recall --gt {GT} --train IN {PREDICTIONS} -o OUT")),
    *_predictions(
        "diagnose",
        "",
        "--as-released --per-class --top 2",
        "--emit predictions",
        "--plot DIR/plot.svg",
    ),
    *_predictions("diagnose", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *(
        Reader(f"explore:{role}", seed, "jsonl", _both(f"explore {words} --slice people,objects -o DIR/explorer"))
        for role, seed, words in (
            ("predictions", PREDICTIONS, f"--gt {GT} IN"),
            ("ground truth", GT, f"--gt IN {PREDICTIONS}"),
        )
    ),
    Reader("diagnose:matches", CORPUS / "matches_diag.jsonl", "jsonl", _both("diagnose IN -o OUT")),
    Reader(
        "validate:predictions",
        PREDICTIONS,
        "records",
        [f"validate --gt {GT} IN -o OUT", "validate IN -o OUT", "validate --open-vocabulary IN -o OUT"],
        law=LINES,
    ),
    Reader("validate:ground truth", GT, "jsonl", [f"validate --gt IN {PREDICTIONS} -o OUT", "validate IN -o OUT"]),
    Reader(
        "validate:vcoco",
        VCOCO / "predictions.jsonl",
        "jsonl",
        [f"validate --dataset vcoco --gt {VCOCO / 'ground_truth.jsonl'} IN -o OUT"],
    ),
    Reader("validate:matches", MATCHES, "jsonl", ["validate IN -o OUT"]),
    Reader("validate:results", FIXTURES / "robust/rows.jsonl", "jsonl", ["validate IN -o OUT"]),
    Reader(
        "agree:ratings",
        FIXTURES / "ratings.jsonl",
        "jsonl",
        _both(
            "agree --permutations 50 IN -o OUT",
            "agree --permutations 50 --subsets --distribution IN -o OUT",
            "agree --permutations 50 --models deepseek* IN -o OUT",
        ),
    ),
    Reader("agree:csv", CORPUS / "ratings.csv", "text", _both("agree --permutations 50 IN -o OUT")),
    Reader(
        "agree:wide",
        FIXTURES / "ratings.csv",
        "text",
        _both("agree --permutations 50 --group differs --models sim --model-scale 0,1 --votes --bootstrap 5 IN -o OUT"),
    ),
    Reader(
        "agree:again",
        FIXTURES / "ratings_again.csv",
        "text",
        _both(
            f"agree --permutations 9 --group differs --model-scale sim=0,1 --again IN {FIXTURES / 'ratings.csv'} -o OUT"
        ),
    ),
    Reader(
        "table:results",
        FIXTURES / "robust/rows.jsonl",
        "jsonl",
        _both(
            "table --format csv IN -o OUT",
            "table --format csv --lines tag.model,tag.corruption --columns tag.severity --metric mAP IN -o OUT",
            "table --format csv --over severity --lines tag.model --columns tag.corruption IN -o OUT",
        ),
    ),
    Reader("robust:results", FIXTURES / "robust/rows.jsonl", "jsonl", _both("robust IN -o OUT")),
    Reader(
        "curriculum:epochs",
        FIXTURES / "robust/epochs.jsonl",
        "jsonl",
        ["curriculum IN -o OUT", "curriculum --every IN -o OUT"],
    ),
    Reader(
        "prompts:questions",
        CHOICE / "pair.json",
        "json",
        _both(
            "prompts --task choice --coords pixels IN -o OUT",
            f"prompts --task choice --response-format --image-list {GT} IN -o OUT",
        ),
    ),
    Reader(
        "prompts:records",
        GT,
        "jsonl",
        _both(
            "prompts IN -o OUT",
            "prompts --task pairs IN -o OUT",
            "prompts --task pairs --vocabulary hico --coords pixels --response-format IN -o OUT",
        ),
    ),
    # pictures
    Reader(
        "corrupt:records",
        CORPUS / "pictures.jsonl",
        "jsonl",
        _both(
            "corrupt --images DIR/images --save-images DIR/made "
            "--corruption jpeg,elastic,occlusion --severity 3 --jobs 1 IN -o OUT"
        ),
    ),
    Reader(
        "corrupt:recipe",
        CORPUS / "recipe.json",
        "json",
        [
            "corrupt --images DIR/images --save-images DIR/made --recipe DIR/recipe.json --corruption jpeg --jobs 1 "
            f"{CORPUS / 'pictures.jsonl'} -o OUT",
            "corrupt --list --recipe DIR/recipe.json --format jsonl -o OUT",
        ],
        file="recipe.json",
    ),
    Reader(
        "corrupt:PNG",
        CORPUS / "a.png",
        "png",
        _both("corrupt --images DIR --save-images DIR/made --corruption jpeg,rainbow --severity 5 --jobs 1 IN -o OUT"),
        file="picture.png",
    ),
    Reader(
        "corrupt:JPEG",
        CORPUS / "b.jpg",
        "jpeg",
        _both("corrupt --images DIR --save-images DIR/made --corruption jpeg,rainbow --severity 5 --jobs 1 IN -o OUT"),
        file="picture.jpg",
    ),
    Reader(
        "mask:records",
        CORPUS / "pictures.jsonl",
        "records",
        _both(
            "mask IN -o OUT", "mask --all-boxes IN -o OUT", "mask --images DIR/images --save-images DIR/made IN -o OUT"
        ),
        law=LINES,
    ),
    Reader(
        "mask:PNG",
        CORPUS / "a.png",
        "png",
        _both("mask --images DIR/images --save-images DIR/made DIR/pictures.jsonl -o OUT"),
        file="images/a.png",
        beside=lambda: {"pictures.jsonl": CORPUS / "pictures.jsonl"},
    ),
    Reader(
        "mask:JPEG",
        CORPUS / "b.jpg",
        "jpeg",
        _both("mask --all-boxes --images DIR/images --save-images DIR/made DIR/pictures.jsonl -o OUT"),
        file="images/b.jpg",
        beside=lambda: {"pictures.jsonl": CORPUS / "pictures.jsonl"},
    ),
    *map(_picture_of, ("explore", "show")),
    # meaning
    Reader(
        "shoe-sim:predictions",
        SHOE / "predictions.jsonl",
        "jsonl",
        _both(
            f"shoe-sim --backend wordnet:path --gt {SHOE / 'gt.jsonl'} IN -o OUT",
            f"shoe-sim --backend lexical --all-pairs --gt {SHOE / 'gt.jsonl'} IN -o OUT",
        ),
    ),
    Reader(
        "shoe-sim:ground truth",
        SHOE / "gt.jsonl",
        "jsonl",
        _both(f"shoe-sim --backend wordnet:path --gt IN {SHOE / 'predictions.jsonl'} -o OUT"),
    ),
    Reader(
        "shoe-sim:pairs", CORPUS / "pairs.jsonl", "jsonl", _both("shoe-sim --backend wordnet:wup --pairs IN -o OUT")
    ),
    Reader(
        "shoe-sim:tables",
        SHOE / "sim.jsonl",
        "jsonl",
        _both(
            "shoe-sim --merge mean IN -o OUT",
            f"shoe-sim --merge majority IN {SHOE / 'sim.jsonl'} -o OUT",
            f"shoe-sim --backend table:IN --pairs {CORPUS / 'pairs.jsonl'} -o OUT",
        ),
    ),
    Reader(
        "shoe-sim:--check",
        SHOE / "sim.jsonl",
        "jsonl",
        _both(f"shoe-sim --check IN --gt {SHOE / 'gt.jsonl'} {SHOE / 'predictions.jsonl'} -o OUT"),
    ),
    Reader(
        "shoe-sim:cache",
        CORPUS / "llm_cache.jsonl",
        "jsonl",
        [f"shoe-sim --backend llm --model m --cache IN --dry-run --pairs {CORPUS / 'pairs.jsonl'} -o OUT"],
    ),
    Reader(
        "shoe-eval:predictions",
        SHOE / "predictions.jsonl",
        "jsonl",
        _both(
            f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim {SHOE / 'sim.jsonl'} IN -o OUT",
            f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim {SHOE / 'sim.jsonl'} --per-class --against dataset --reasons "
            "DIR/why.jsonl IN -o OUT",
        ),
    ),
    Reader(
        "shoe-eval:ground truth",
        SHOE / "gt.jsonl",
        "jsonl",
        _both(
            f"shoe-eval --gt IN --sim {SHOE / 'sim.jsonl'} {SHOE / 'predictions.jsonl'} -o OUT",
            f"shoe-eval --gt IN --sim {SHOE / 'sim.jsonl'} --single-hoi {SHOE / 'predictions.jsonl'} -o OUT",
        ),
    ),
    Reader(
        "shoe-eval:tables",
        SHOE / "sim.jsonl",
        "jsonl",
        _both(f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim IN {SHOE / 'predictions.jsonl'} -o OUT"),
    ),
    Reader(
        "vocab:labels",
        CORPUS / "labels.txt",
        "text",
        ["vocab --pos v --senses - -o OUT", "vocab --senses - -o OUT"],
        stdin=True,
    ),
    *(
        Reader(
            f"vocab:wordnet {name}",
            WORDNET / name,
            "text",
            [
                f"vocab --wordnet DIR/wordnet{language} -o OUT --senses horse --senses ride --senses chien",
                f"shoe-sim --wordnet DIR/wordnet{language} --backend wordnet:path --pairs {SENSES} -o OUT",
            ],
            file=f"wordnet/{name}",
            beside=partial(_wordnet_but_for, name),
        )
        for name, language in (
            ("data.noun", ""),
            ("data.verb", ""),
            ("index.verb", ""),
            ("cntlist.rev", ""),
            ("fra/wn-data-fra.tab", ":fra"),
        )
    ),
    # all together
    Reader(
        "eval:slices",
        CORPUS / "slices.tsv",
        "text",
        [f"eval --gt {GT} --protocol hico --slice IN {PREDICTIONS} -o OUT"],
    ),
    Reader(
        "eval:protocol",
        CORPUS / "protocol.json",
        "json",
        [f"{command} --gt {GT} --protocol IN {PREDICTIONS} -o OUT" for command in ("eval", "match")],
        file="protocol.json",
    ),
    Reader(
        "compare:predictions",
        PREDICTIONS,
        "jsonl",
        _both(
            f"compare --bootstrap 10 --gt {GT} {PREDICTIONS} IN -o OUT",
            f"compare --bootstrap 10 --gt {GT} IN {PREDICTIONS} --name a,b -o OUT",
        ),
    ),
    Reader(
        "compare:several",
        PREDICTIONS,
        "jsonl",
        _both(
            f"compare --bootstrap 5 --name a,a,b --slice people --gt {GT} {PREDICTIONS} IN {PREDICTIONS_B} -o OUT",
            f"compare --bootstrap 5 --name a,b --metric soft_map,mf1 --sim lexical --gt {GT} {PREDICTIONS} IN -o OUT",
            f"compare --bootstrap 5 --name a,b --per-class --gt {GT} {PREDICTIONS} IN -o OUT",
        ),
    ),
    Reader(
        "compare:tables",
        SHOE / "sim.jsonl",
        "jsonl",
        _both(
            f"compare --bootstrap 5 --name a,b --metric soft_map --sim IN --gt {SHOE / 'gt.jsonl'} "
            f"{SHOE / 'predictions.jsonl'} {SHOE / 'predictions.jsonl'} -o OUT"
        ),
    ),
    Reader(
        "compare:ground truth",
        GT,
        "jsonl",
        _both(f"compare --bootstrap 10 --name a,b --gt IN {PREDICTIONS} {PREDICTIONS_B} -o OUT"),
    ),
]

# A format whose fixture has a maker with FORMAT and KIND is attacked without a row here.
for _module in iter_modules(tests.foreign.__path__):
    _maker = import_module(f"tests.foreign.{_module.name}")
    if getattr(_maker, "FORMAT", None):
        READERS.append(_convert(_maker.FORMAT, FOREIGN / _maker.FILE, _maker.KIND))

BY_NAME = {reader.name: reader for reader in READERS}
