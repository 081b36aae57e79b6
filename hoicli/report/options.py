"""The options of a report: what they ask to be measured, and as command lines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from hoicli.converters.opening import Opening, content
from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import explicit, protocols
from hoicli.io.inputs import parts_of
from hoicli.records.results import parse_tags
from hoicli.report.measured import PAIR_NMS, Request
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load


@dataclass(frozen=True)
class Options:
    """The options of the command, as they were given."""

    gt: str
    predictions: Sequence[str]
    filters: Filters
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
    opening: Opening = field(default_factory=Opening)

    def request(self) -> Request:
        """What is to be measured. Raises `UsageError` for what cannot be."""
        if self.top < 0:
            raise UsageError(f"--top {self.top}: give a whole number of at least 0")
        vocabulary = load(self.dataset)
        return Request(
            vocabulary=vocabulary,
            protocols=protocols(list(self.protocols), vocabulary),
            filters=self.filters,
            split=vocabulary.split(self.split) if self.split else None,
            tags=parse_tags(list(self.tags)),
            top=self.top,
            resampling=None if self.bootstrap is None else Resampling.checked(self.bootstrap, self.seed),
            named=explicit(self.protocols),
        )

    @property
    def streams(self) -> list[str]:
        """What the predictions are called."""
        return [file_name(path) for path in self.predictions]

    def commands(self, primary: str, *, diagnosed: bool) -> list[str]:
        """Command lines, on files of these names, that compute the report's numbers again."""
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
        means += [] if self.bootstrap is None else ["--bootstrap", str(self.bootstrap), "--seed", str(self.seed)]
        means += filters

        def command(name: str, *options: str, together: bool = True) -> str:
            """`together`: the command takes several streams as one."""
            words = ["hoicli", name, *options, *common, "--gt", file_name(self.gt)]
            if together or len(self.streams) == 1:
                return shlex.join([*words, *self.streams])
            if any(path != "-" and content(path) == "dump" for path in self.predictions):
                return shlex.join([*words, ",".join(self.streams)])
            return f"{shlex.join(['cat', *self.streams])} | {shlex.join(words)}"

        protocols = ["--protocol", ",".join(self.protocols)] if self.protocols else []
        lines = [command("eval", *protocols, *means), command("eval", "--per-class", "--protocol", primary, *means)]
        if diagnosed:
            top = ["--top", str(self.top)] if self.top else []
            nms = ",".join(f"{value:g}" for value in PAIR_NMS)
            lines.append(command("diagnose", *top, *filters, together=False))
            lines.append(command("pairstats", "--nms-sweep", nms, together=False))
        return lines


def file_name(path: str) -> str:
    """What a path is called in a report: its last part, so that the same files give the same report everywhere."""
    return ",".join(part if part == "-" else PurePath(part).name for part in parts_of(path))
