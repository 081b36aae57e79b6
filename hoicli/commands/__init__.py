"""One module for each subcommand: it declares the options, calls the library once, and writes rows or records."""

from __future__ import annotations

from itertools import chain

GROUPS = {
    "From predictions to numbers": {
        "convert": "Convert ground truth and predictions in other formats to hoicli's JSONL, and back.",
        "validate": "Check files, alone or against ground truth, for mistakes that would make the numbers wrong.",
        "match": "Match predictions with ground truth: one line for each image, for eval and for jq.",
        "eval": "The mAP of your predictions by each published protocol.",
        "recall": "Recall at K of triplets, as scene graphs are evaluated: R@K, mR@K, zR@K and F1@K.",
        "data": "Keep ground truth under a name, for --gt hico:test; what is published, and where.",
    },
    "Why, and is it better": {
        "diagnose": "Why a detector fails: types of errors, and the mAP you would gain by fixing each.",
        "curves": "Precision and recall by score threshold, the best threshold, and the calibration of scores.",
        "confusion": "Which verbs and objects are confused, and how much mAP that costs.",
        "pairstats": "How well people and objects are paired: pair recall and precision, negative AP, interaction mAP.",
        "compare": "Whether one detector is better than another, by how much, and where.",
        "claim": "Which protocol, pair NMS and top-k give the numbers that a paper prints.",
        "explore": "One HTML page: a summary, and the classes, errors and images behind its numbers.",
        "show": "Draw ground truth and predictions on the images: a folder of pictures, or one sheet.",
        "audit": "Suspicious ground truth: boxes drawn twice, triplets that models contradict, missing labels.",
        "table": "One table of the result rows of any number of models: LaTeX, Markdown, HTML, CSV.",
    },
    "Corrupted images": {
        "corrupt": "Make RoHOI-style corrupted images: 20 corruptions at five severities; boxes move along.",
        "robust": "How well a detector withstands corruption: MRI, CRI, and each corruption, family and severity.",
        "mask": "SAMPL's semantic masks: black rectangles over the boxes that interact, for training.",
        "curriculum": "SAMPL's curriculum: the next epoch's masking level, from the scores so far.",
    },
    "Open vocabulary and vision-language models": {
        "shoe-sim": "How similar senses are, for shoe-eval: from WordNet, from language models, or joined tables.",
        "shoe-eval": "SHOE's soft mAP and mF1: open-vocabulary predictions, scored by meaning.",
        "agree": "How well raters and models agree: kappa, alpha, agreement, Spearman's rho.",
        "prompts": "Write questions for a vision-language model; convert --from vlm reads its answers.",
        "vlm-eval": "Evaluate answers of vision-language models: multiple choice, grounding and referring.",
    },
    "Looking things up": {
        "vocab": "The verbs, objects, interactions and splits of a dataset; the WordNet senses of a label.",
        "doctor": "What is installed, what is missing, and whether it works: for a bug report.",
    },
}
"""The commands by what they are for, each with its line in `hoicli --help`."""
COMMANDS = dict(chain.from_iterable(lines.items() for lines in GROUPS.values()))
