"""The options of a report: what they ask to be measured, and as command lines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from hoicli.converters.opening import Opening
from hoicli.diagnosis.run import Model
from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocol_files import chosen_protocols, explicit
from hoicli.evaluation.views import Views
from hoicli.io.inputs import parts_of
from hoicli.records.results import parse_tags
from hoicli.report.measured import PAIR_NMS, Request
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load


@dataclass(frozen=True)
class Options:
    """The options of the command, as they were given; names: of the models, in the order of predictions."""

    gt: str
    predictions: Sequence[str]
    filters: Filters
    names: Sequence[str] = ()
    dataset: str = "hico"
    protocols: Sequence[str] = ()
    split: str | None = None
    top: int = 10
    rows: Sequence[str] = ()
    images: str | None = None
    title: str | None = None
    tags: Sequence[str] = ()
    bootstrap: int | None = None
    seed: int = 0
    skip: bool = False
    iou: Sequence[str] = ()
    slices: Sequence[str] = ()
    opening: Opening = field(default_factory=Opening)

    def request(self) -> Request:
        """What is to be measured. Raises `UsageError` for what cannot be."""
        if self.top < 0:
            raise UsageError(f"--top {self.top}: give a whole number of at least 0")
        vocabulary = load(self.dataset)
        several = len(self.predictions) > 1
        taken = ["model", "baseline"] if several else ["model"] if self.names else []
        taken += [*(["iou"] if self.iou else []), *(["slice", "part"] if self.slices else [])]
        return Request(
            vocabulary=vocabulary,
            protocols=chosen_protocols(self.protocols, self.dataset),
            filters=self.filters,
            split=vocabulary.split(self.split) if self.split else None,
            tags=parse_tags(list(self.tags), taken=taken),
            top=self.top,
            resampling=Resampling.asked(self.bootstrap, self.seed),
            named=explicit(self.protocols),
            views=Views.parse(self.iou, self.slices, vocabulary),
        )

    def models(self) -> list[Model]:
        """The streams with their names. Raises `UsageError` for names that do not fit."""
        return Model.named(self.predictions, self.names, self.opening.predictions)

    @property
    def streams(self) -> list[str]:
        """What the predictions' files are called; where two would be called the same, their paths."""
        short = [file_name(path) for path in self.predictions]
        return short if len(set(short)) == len(short) else list(self.predictions)

    def commands(self, primary: str, *, diagnosed: bool) -> list[str]:
        """Command lines, on files of these names, that compute the report's numbers again."""
        models = self.models()
        common = [] if self.dataset == "hico" else ["--dataset", self.dataset]
        common += [word for tag in self.tags for word in ("--tag", tag)]
        common += ["--on-error", "skip"] if self.skip else []
        common += ["--allow-uncounted"] if self.filters.allow_uncounted else []
        kept = self.filters
        filters = [] if kept.top_k is None else ["--top-k", str(kept.top_k)]
        if kept.nms is not None:
            exponents = ["--nms-alpha", f"{kept.nms_alpha:g}", "--nms-beta", f"{kept.nms_beta:g}"]
            filters += ["--nms", f"{kept.nms:g}", *exponents]
        means = ["--split", self.split] if self.split else []
        drawn = [] if self.bootstrap is None else ["--bootstrap", str(self.bootstrap), "--seed", str(self.seed)]
        means += drawn + filters

        def command(name: str, *options: str) -> list[str]:
            """The command for each stream."""
            ends = [
                [*(["--tag", f"model={model.name}"] if model.tagged else []), "--gt", file_name(self.gt), stream]
                for model, stream in zip(models, self.streams, strict=True)
            ]
            return [shlex.join(["hoicli", name, *options, *common, *end]) for end in ends]

        protocols = ["--protocol", ",".join(self.protocols)] if self.protocols else []
        views = [word for value in self.iou for word in ("--iou", value)]
        views += [word for value in self.slices for word in ("--slice", value)]
        lines = command("eval", *protocols, *means)
        lines += command("eval", *protocols, *views, *means) if views else []
        lines += command("eval", "--per-class", "--protocol", primary, *means)
        lines += command("curves", "--protocol", primary, *filters)
        if diagnosed:
            nms = ",".join(f"{value:g}" for value in PAIR_NMS)
            lines += command("diagnose", *(["--top", str(self.top)] if self.top else []), *filters)
            lines += command("confusion", "--top", str(self.top), *filters)
            lines += command("pairstats", "--nms-sweep", nms)
        if len(models) > 1:
            names = ["--name", ",".join(model.name for model in models)]
            asked = [*(drawn or ["--bootstrap", "0"]), *filters, *common, "--gt", file_name(self.gt)]
            words = ["hoicli", "compare", "--no-errors", "--protocol", primary, "--top", str(self.top), *names]
            lines.append(shlex.join([*words, *asked, *self.streams]))
        return lines


def file_name(path: str) -> str:
    """What a path is called in a report: its last part, so that the same files give the same report everywhere."""
    return ",".join(part if part == "-" else PurePath(part).name for part in parts_of(path))
