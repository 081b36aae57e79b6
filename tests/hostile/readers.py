"""Everything that hoicli reads: a row a reader, with a sound file to begin from and command lines that read it.

A new command needs a row here (or a word in READS_NOTHING): tests/hostile/test_readers.py compares. A format whose
fixture has a maker in tests/foreign with `format` and `kind` needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from tests.foreign import fixtures
from tests.support.project import EIGHT, FIXTURES
from tests.support.shell import command_of

CORPUS = Path(__file__).parent / "corpus"
FOREIGN, VCOCO, SWIG, SHOE = FIXTURES / "foreign", FIXTURES / "vcoco", FIXTURES / "swig", FIXTURES / "shoe"
OWN, CHOICE = FIXTURES / "own", FIXTURES / "choice"
GT, PREDICTIONS, MATCHES = EIGHT / "gt.jsonl", EIGHT / "predictions.jsonl", EIGHT / "expected/matches.jsonl"
IMAGE = "images/HICO_test2015_00000001.jpg"
PAIR = f"--gt {GT} {PREDICTIONS}"
SHOE_PAIR = f"--gt {SHOE / 'gt.jsonl'} {SHOE / 'predictions.jsonl'}"
JPEG = f"--images {CORPUS} --corruption jpeg,rainbow --severity 2 --jobs 1"

READS_NOTHING = {"data": "keeps what convert reads, by convert's own readers", "doctor": "looks at its own files"}
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
    pictures in `images`). file: the broken file's name in DIR; beside: a key of BESIDE; law: LINES, ITEMS, TRUTH or
    none.
    """

    name: str
    seed: Path
    kind: str
    calls: Sequence[str]
    file: str = ""
    beside: str = ""
    law: str = ""

    @property
    def command(self) -> str:
        return self.name.split(":")[0]


def _in(folder: Path, *patterns: str, at: str = "") -> dict[str, Path]:
    return {at + path.relative_to(folder).as_posix(): path for pattern in patterns for path in folder.rglob(pattern)}


BESIDE: dict[str, dict[str, Path]] = {
    "": {},
    "vsrl": _in(VCOCO, "vcoco_test.json", "instances.json", "test.ids"),
    "wordnet": _in(CORPUS, "wordnet/**/*.*"),
    "mats": _in(FOREIGN / "detections_mat", "*", at="mats/"),
    "rows": _in(FOREIGN / "rows_mat", "*", at="rows/"),
    "images": _in(EIGHT / "images", "*", at="images/"),
    "records": _in(CORPUS, "pictures.jsonl"),
}
"""Sound files that are copied into DIR, before the broken one."""


def options_of(command: str) -> set[str]:
    return {option for param in command_of(command).params for option in param.opts}


def filled(text: str) -> str:
    """A text with this module's names, as $GT, replaced by what they stand for."""
    return Template(text).substitute({name: value for name, value in globals().items() if name.isupper()})


def _calls(lines: Sequence[str]) -> list[str]:
    """Command lines with -o OUT, where they have none; strictly and under skip, where the command has a policy."""
    calls = []
    for line in lines:
        policies = [" --on-error stop", " --on-error skip"] if "--on-error" in options_of(line.split()[0]) else [""]
        calls += [f"{line}{'' if ' -o ' in line else ' -o OUT'}{policy}" for policy in policies]
    return calls


def rows(table: str) -> Iterator[Reader]:
    """The readers of a table. A row is `name | seed | kind | settings`, with its command lines indented below; one
    without any is a format, read by its name and by detection."""
    blocks: list[list[str]] = []
    for line in filter(None, filled(table).splitlines()):
        if line.startswith(" "):
            blocks[-1].append(line.strip())
        elif not line.startswith("#"):
            blocks.append([line])
    for head, *lines in blocks:
        name, seed, kind, *settings = (part.strip() for part in head.split("|"))
        given: dict[str, Any] = dict(one.split("=") for one in settings)
        format_ = name.removeprefix("convert:").split("/")[0]
        yield Reader(name, Path(seed), kind, _calls(lines or [f"convert --from {format_} IN", "convert IN"]), **given)


def pair(command: str, *options: str, law: str = "", gt: Path = GT) -> list[Reader]:
    """A command that reads predictions beside a ground truth: each of them broken in turn."""
    found = PREDICTIONS if gt == GT else gt.with_name("predictions.jsonl")
    of = "" if gt == GT else f" {gt.parent.name}"
    return [
        Reader(f"{command}:{role}{of}", seed, "jsonl", _calls([f"{command} {words} {option}" for option in options]),
               law=law)
        for role, seed, words in (("predictions", found, f"--gt {gt} IN"), ("ground truth", gt, f"--gt IN {found}"))
    ]  # fmt: skip


READERS: list[Reader] = [
    *pair("eval", "", "--per-class --nms 0.7 --top-k 3", "--split rf-uc --format csv"),
    *pair("eval", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *pair("eval", "--dataset swig", gt=SWIG / "gt.jsonl"),
    *pair("match", "--protocol hico", law=TRUTH),
    *pair("match", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *pair("pairstats", "", "--format csv"),
    *pair("curves", "", "--per-class", "--plot DIR/plot.svg"),
    *pair("confusion", "", "--top all --plot DIR/plot.svg"),
    *pair("audit", "", "--same 0.3 --sure 0"),
    *pair("audit", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *pair("show", "-o DIR/sheet.png", "--top all --size 64 -o DIR/drawn"),
    *pair("explore", "--slice people,objects -o DIR/explorer"),
    *pair("recall", "", "--per-class", "--as-released openpsg"),
    *pair("diagnose", "", "--as-released --per-class", "--emit predictions", "--plot DIR/plot.svg"),
    *pair("diagnose", "--dataset vcoco", gt=VCOCO / "ground_truth.jsonl"),
    *rows("""
# the file of a dataset
vocab:dataset | $OWN/site.json | json
    vocab IN
    vocab IN --list objects
    eval --dataset IN --gt $OWN/gt.jsonl $OWN/predictions.jsonl
    eval --dataset IN --protocol all --per-class --gt $OWN/gt.jsonl $OWN/predictions.jsonl
    match --dataset IN --gt $OWN/gt.jsonl $OWN/predictions.jsonl
    diagnose --dataset IN --gt $OWN/gt.jsonl $OWN/predictions.jsonl
    pairstats --dataset IN --gt $OWN/gt.jsonl $OWN/predictions.jsonl
    convert --dataset IN $OWN/results.json
    validate --dataset IN $OWN/predictions.jsonl
vocab:ground truth | $OWN/gt.jsonl | jsonl
    vocab --from IN
    vocab --from $OWN/gt.jsonl --train IN

# formats
convert:records | $PREDICTIONS | records | law=lines
convert:records/to | $PREDICTIONS | jsonl
    convert --to cdn-json IN
    convert --to coco-rel --dataset hico IN
convert:records/to ground truth | $GT | jsonl
    convert --to hoia IN
    convert --to pocket IN
    convert --to corre IN
convert:records/to graphs | $FIXTURES/graphs/predictions.jsonl | jsonl
    convert --to coco-rel IN
convert:records/to vcoco | $VCOCO/predictions.jsonl | jsonl
    convert --to vcoco-pkl IN
convert:coco-rel | $FIXTURES/graphs/foreign/_annotations.coco.json | json
convert:label-studio | $OWN/label_studio.json | json
convert:cvat | $OWN/annotations.xml | text
convert:vsrl/actions | $VCOCO/vcoco_test.json | json | file=vcoco_test.json | beside=vsrl
    convert IN DIR/instances.json DIR/test.ids
    convert --from vsrl IN DIR/instances.json DIR/test.ids
convert:vsrl/instances | $VCOCO/instances.json | json | file=instances.json | beside=vsrl
    convert IN DIR/vcoco_test.json DIR/test.ids
    convert --from vsrl IN DIR/vcoco_test.json DIR/test.ids
convert:vsrl/ids | $VCOCO/test.ids | text | file=test.ids | beside=vsrl
    convert IN DIR/vcoco_test.json DIR/instances.json
    convert --from vsrl IN DIR/vcoco_test.json DIR/instances.json
convert:qpic-vcoco | $CORPUS/qpic_vcoco.json | json | law=items
convert:ppdm-vcoco-gt | $CORPUS/ppdm_vcoco.json | json
convert:pocket-vcoco | $CORPUS/pocket_vcoco.json | json
convert:pocket | $FOREIGN/instances_test2015.json | json
convert:hoia | $FOREIGN/test_hico.json | json | law=items
convert:hoia/hoi-a | $CORPUS/hoia.json | json | law=items
    convert --from hoia --dataset hoia IN
convert:ambiguous | $CORPUS/ambiguous.pkl | pickle
convert:ambiguous/names | $CORPUS/ambiguous_names.pkl | pickle
    convert $CORPUS/ambiguous.pkl IN
convert:swig | $SWIG/foreign/swig_dev_1000.json | json | law=items
convert:hico-mat/boxes | $FOREIGN/anno_bbox.mat | mat
    convert IN
    convert IN $FOREIGN/anno.mat
    convert --part train IN
convert:hico-mat/labels | $FOREIGN/anno.mat | mat
    convert $FOREIGN/anno_bbox.mat IN
    convert IN
convert:no-frills | $FOREIGN/anno_list.json | json
convert:vcoco | $VCOCO/predictions.json | json
convert:vcoco/pickle | $VCOCO/foreign/vcoco_results.pkl | pickle
convert:qpic-vcoco-list | $CORPUS/qpic_vcoco_list.json | json | law=items
convert:ppdm-vcoco-list | $CORPUS/ppdm_vcoco_list.json | json
convert:cdn | $FOREIGN/cdn.json | json | law=items
convert:cdn/text in text | $FOREIGN/results.json | json-string
convert:gen-vlkt | $FOREIGN/results_gen_vlkt.json | json-string
convert:ppdm | $FOREIGN/predictions_ppdm.json | json
convert:ppdm/hoi-a | $CORPUS/hoia_ppdm.json | json
    convert --from ppdm --dataset hoia IN
convert:ican | $CORPUS/ican.pkl | pickle
    convert IN
    convert --from ican --image-list $GT IN
convert:image-scores | $CORPUS/image_scores.npy | npy
    convert --from image-scores --image-list $GT IN
convert:inpcc | $FOREIGN/inpcc.json | json
    convert IN
    convert --from inpcc --image-list $GT IN
convert:inpcc/pickle | $FOREIGN/preds.pkl | pickle
    convert IN
    convert --from inpcc --image-list $GT IN
convert:ppdm-mat | $FOREIGN/rows_mat/detections_05.mat | mat | file=rows/detections_05.mat | beside=rows
    convert --from ppdm-mat DIR/rows
    convert --on-error skip DIR/rows
convert:mat | $FOREIGN/detections_mat/detections_05.mat | mat | file=mats/detections_05.mat | beside=mats
    convert --from mat --image-list $GT IN
convert:logits | $FOREIGN/logits.npz | npz
    convert IN
    convert --from logits --image-list $GT IN
    convert --from logits --image-list $GT --lambda 1 IN
    convert --from logits --activation softmax IN
    convert --from logits --threshold 0 IN
convert:diag-pairs | $FOREIGN/pairs.pkl | pickle
convert:vlm | $FIXTURES/vlm/answers.jsonl | answers
    convert --from vlm --coords 1000 IN
    convert --from vlm --coords 1000-yx IN
    convert --from vlm --coords qwen2.5 IN
    convert --from vlm --coords relative --to-vocabulary IN
    convert --from vlm --coords resized:640x480 IN
convert:vlm/forms | $CORPUS/vlm_forms.jsonl | answers
    convert --from vlm --coords 1000 IN
    convert --from vlm --coords relative --to-vocabulary IN
    convert --from vlm --coords pixels --scores tokens IN
convert:vlm/batch | $CORPUS/vlm_batch.jsonl | answers
    convert --from vlm --coords 1000 IN
    convert --from vlm --coords 1000 --scores tokens IN
convert:vlm/grounding | $CORPUS/vlm_grounding.json | json
    convert IN
    convert --from vlm --to-vocabulary IN
convert:vlm/hoi-r1 | $CORPUS/vlm_hoi_r1.json | json
    convert --from vlm --coords 1000 --image-list $GT IN
convert:vlm/mllms | $CORPUS/vlm_mllms.json | json
    convert --from vlm --to-vocabulary IN
    convert --from vlm --coords pixels IN
convert:--boxes | $GT | jsonl
    convert --from vlm --coords 1000 --boxes IN $FIXTURES/vlm/answers.jsonl
convert:--image-list records | $GT | jsonl
    convert --image-list IN $FOREIGN/preds.pkl
    convert --image-list IN --from logits $FOREIGN/logits.npz
convert:--image-list list | $CORPUS/images.txt | text
    convert --image-list IN $FOREIGN/inpcc.json
    convert --image-list IN $FOREIGN/detections_mat

# dumps that are not converted first
eval:dump of predictions | $FOREIGN/cdn.json | json
    eval --gt $GT IN
eval:pickle | $FOREIGN/preds.pkl | pickle
    eval --gt $GT IN
match:pickle | $FOREIGN/preds.pkl | pickle
    match --only-predicted --gt $GT IN
eval:dump of ground truth | $FOREIGN/instances_test2015.json | json
    eval --gt IN $PREDICTIONS
    diagnose --gt IN $PREDICTIONS
eval:two files in one | $FOREIGN/anno_bbox.mat | mat | file=anno_bbox.mat
    eval --gt DIR/anno_bbox.mat,$FOREIGN/anno.mat $PREDICTIONS
validate:dump | $FOREIGN/results.json | json-string
    validate --gt $GT IN

# records, and what is made of them
eval:matches | $MATCHES | jsonl
    eval IN
eval:slices | $CORPUS/slices.tsv | text
    eval --protocol hico --slice IN $PAIR
eval:protocol | $CORPUS/protocol.json | json | file=protocol.json
    eval --protocol IN $PAIR
    match --protocol IN $PAIR
show:predictions alone | $PREDICTIONS | jsonl
    show IN -o DIR/sheet.png
    show IN --top all --size 64 -o DIR/drawn
show:JPEG | $EIGHT/$IMAGE | jpeg | file=$IMAGE | beside=images
    show $PAIR --images DIR/images -o DIR/drawn
explore:JPEG | $EIGHT/$IMAGE | jpeg | file=$IMAGE | beside=images
    explore $PAIR --images DIR/images -o DIR/explorer
curves:matches | $MATCHES | jsonl
    curves IN
diagnose:matches | $CORPUS/matches_diag.jsonl | jsonl
    diagnose IN
recall:training | $GT | jsonl
    recall --train IN $PAIR
validate:predictions | $PREDICTIONS | records | law=lines
    validate --gt $GT IN
    validate IN
    validate --open-vocabulary IN
validate:ground truth | $GT | jsonl
    validate --gt IN $PREDICTIONS
    validate IN
validate:vcoco | $VCOCO/predictions.jsonl | jsonl
    validate --dataset vcoco --gt $VCOCO/ground_truth.jsonl IN
validate:matches | $MATCHES | jsonl
    validate IN
validate:results | $FIXTURES/robust/rows.jsonl | jsonl
    validate IN
claim:predictions | $PREDICTIONS | jsonl
    claim --gt $GT IN 76.19/100/74.36
claim:ground truth | $GT | jsonl
    claim --gt IN $PREDICTIONS 76.2
compare:predictions | $PREDICTIONS | jsonl
    compare --bootstrap 10 --gt $GT $PREDICTIONS IN
    compare --bootstrap 10 --gt $GT IN $PREDICTIONS --name a,b
compare:several | $PREDICTIONS | jsonl
    compare --bootstrap 5 --name a,b,c --slice people --gt $GT $PREDICTIONS IN $CORPUS/predictions_b.jsonl
    compare --bootstrap 5 --name a,b --metric soft_map,mf1 --sim lexical --gt $GT $PREDICTIONS IN
    compare --bootstrap 5 --name a,b --per-class --gt $GT $PREDICTIONS IN
compare:tables | $SHOE/sim.jsonl | jsonl
    compare --bootstrap 5 --name a,b --metric soft_map --sim IN $SHOE_PAIR $SHOE/predictions.jsonl
compare:ground truth | $GT | jsonl
    compare --bootstrap 10 --name a,b --gt IN $PREDICTIONS $CORPUS/predictions_b.jsonl

# ratings and rows
agree:ratings | $FIXTURES/agree/ratings.jsonl | jsonl
    agree IN
    agree --subsets --distribution IN
    agree --models deepseek* IN
agree:csv | $CORPUS/ratings.csv | text
    agree IN
agree:wide | $FIXTURES/agree/ratings.csv | text
    agree --group differs --models sim --votes --bootstrap 5 IN
agree:again | $FIXTURES/agree/ratings_again.csv | text
    agree --group differs --again IN $FIXTURES/agree/ratings.csv
table:results | $FIXTURES/robust/rows.jsonl | jsonl
    table --format csv IN
    table --format csv --lines tag.model,tag.corruption --columns tag.severity --metric mAP IN
    table --format csv --over severity --lines tag.model --columns tag.corruption IN
robust:results | $FIXTURES/robust/rows.jsonl | jsonl
    robust IN
curriculum:epochs | $FIXTURES/robust/epochs.jsonl | jsonl
    curriculum IN
    curriculum --every IN

# questions and answers
vlm-eval:choice questions | $CHOICE/pair.json | json
    vlm-eval --questions IN $CHOICE/saved.json
    vlm-eval --questions IN $PREDICTIONS
    vlm-eval --questions IN $CHOICE/saved.json --as-released crosshoi-bench --bootstrap 5
vlm-eval:choice questions scene | $CHOICE/scene.json | json
    vlm-eval --questions IN $CHOICE/answers.jsonl
    vlm-eval --questions IN $CHOICE/answers.jsonl --as-released crosshoi-bench --bootstrap 5
vlm-eval:choice text | $CHOICE/answers.jsonl | answers
    vlm-eval --questions $CHOICE/scene.json IN
    vlm-eval --questions $CHOICE/scene.json IN --as-released crosshoi-bench --bootstrap 5
vlm-eval:choice saved | $CHOICE/saved.json | json
    vlm-eval --questions $CHOICE/pair.json IN
    vlm-eval --questions $CHOICE/pair.json IN --as-released crosshoi-bench --bootstrap 5
vlm-eval:choice dump | $CHOICE/detector.json | json
    vlm-eval --questions $CHOICE/pair.json IN
    vlm-eval --questions $CHOICE/pair.json IN --as-released crosshoi-bench --bootstrap 5
vlm-eval:choice records | $PREDICTIONS | jsonl
    vlm-eval --questions $CHOICE/pair.json IN
    vlm-eval --questions $CHOICE/pair.json IN --as-released crosshoi-bench --bootstrap 5
vlm-eval:ground results | $CHOICE/grounded.json | json
    vlm-eval IN
    vlm-eval --as-released hoi-benchmarks --bootstrap 5 IN
vlm-eval:refer results | $CHOICE/referred.json | json
    vlm-eval --dataset hico IN
    vlm-eval --needed IN
prompts:questions | $CHOICE/pair.json | json
    prompts --task choice --coords pixels IN
    prompts --task choice --image-list $GT IN
prompts:records | $GT | jsonl
    prompts IN
    prompts --task pairs IN
    prompts --task pairs --vocabulary hico --coords pixels IN

# pictures
corrupt:records | $CORPUS/pictures.jsonl | jsonl
    corrupt --images DIR/images --save-images DIR/made --corruption jpeg,elastic,occlusion --severity 3 --jobs 1 IN
    corrupt --images DIR/images --records-only --corruption elastic,occlusion --severity 3 --jobs 1 IN
corrupt:recipe | $CORPUS/recipe.json | json | file=recipe.json
    corrupt --images DIR/images --save-images DIR/made --recipe IN --corruption jpeg --jobs 1 $CORPUS/pictures.jsonl
    corrupt --list --recipe IN --format jsonl
corrupt:PNG | $CORPUS/a.png | png | file=picture.png
    corrupt --images DIR --save-images DIR/made --corruption jpeg,rainbow --severity 5 --jobs 1 IN
corrupt:JPEG | $CORPUS/b.jpg | jpeg | file=picture.jpg
    corrupt --images DIR --save-images DIR/made --corruption jpeg,rainbow --severity 5 --jobs 1 IN
mask:records | $CORPUS/pictures.jsonl | records | law=lines
    mask IN
    mask --images DIR/images --save-images DIR/made IN
mask:PNG | $CORPUS/a.png | png | file=images/a.png | beside=records
    mask --images DIR/images --save-images DIR/made DIR/pictures.jsonl
mask:JPEG | $CORPUS/b.jpg | jpeg | file=images/b.jpg | beside=records
    mask --images DIR/images --save-images DIR/made DIR/pictures.jsonl

# meaning
shoe-sim:predictions | $SHOE/predictions.jsonl | jsonl
    shoe-sim --backend wordnet:path --gt $SHOE/gt.jsonl IN
    shoe-sim --backend lexical --gt $SHOE/gt.jsonl IN
shoe-sim:ground truth | $SHOE/gt.jsonl | jsonl
    shoe-sim --backend wordnet:path --gt IN $SHOE/predictions.jsonl
shoe-sim:pairs | $CORPUS/pairs.jsonl | jsonl
    shoe-sim --backend wordnet:wup --pairs IN
shoe-sim:tables | $SHOE/sim.jsonl | jsonl
    shoe-sim --merge mean IN
    shoe-sim --merge majority IN $SHOE/sim.jsonl
shoe-sim:--check | $SHOE/sim.jsonl | jsonl
    shoe-sim --check IN $SHOE_PAIR
shoe-sim:cache | $CORPUS/llm_cache.jsonl | jsonl
    shoe-sim --backend llm --model m --cache IN --dry-run --pairs $CORPUS/pairs.jsonl
shoe-eval:predictions | $SHOE/predictions.jsonl | jsonl
    shoe-eval --allow-missing --gt $SHOE/gt.jsonl --sim $SHOE/sim.jsonl IN
    shoe-eval --allow-missing --gt $SHOE/gt.jsonl --sim $SHOE/sim.jsonl --per-class --reasons DIR/why.jsonl IN
shoe-eval:ground truth | $SHOE/gt.jsonl | jsonl
    shoe-eval --allow-missing --gt IN --sim $SHOE/sim.jsonl $SHOE/predictions.jsonl
    shoe-eval --allow-missing --gt IN --sim $SHOE/sim.jsonl --single-hoi $SHOE/predictions.jsonl
shoe-eval:tables | $SHOE/sim.jsonl | jsonl
    shoe-eval --sim IN $SHOE_PAIR
"""),
    *(
        reader
        for name, language in (("data.noun", ""), ("data.verb", ""), ("index.verb", ""), ("cntlist.rev", ""),
                               ("fra/wn-data-fra.tab", ":fra"))
        for reader in rows(f"""
vocab:wordnet {name} | $CORPUS/wordnet/{name} | text | file=wordnet/{name} | beside=wordnet
    vocab --wordnet DIR/wordnet{language} --senses horse --senses ride --senses chien
    shoe-sim --wordnet DIR/wordnet{language} --backend wordnet:path --pairs $CORPUS/wordnet_pairs.jsonl
""")
    ),
]  # fmt: skip

for _fixture in fixtures().values():
    if _fixture.format:
        READERS += rows(f"convert:{_fixture.format} | {_fixture.path} | {_fixture.kind}")

BY_NAME = {reader.name: reader for reader in READERS}
