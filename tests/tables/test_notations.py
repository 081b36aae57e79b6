"""Result rows as text in each notation."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.tables.notations import render

ROWS: list[dict[str, Any]] = [
    {"metric": "mean_max_recall", "subset": subset, "value": value, "protocol": "hico-ko", "signature": signature}
    for signature in ("protocol:hico-ko|labels:derived",)
    for subset, value in (("full", 12.345), ("a_b%&", 6.0))
]
NOTE = "image-level labels derived from the annotated pairs: not the official Known Object setting"
SETTINGS = "settings: labels:derived"


@pytest.mark.parametrize(("notation", "text"), [
    ("table",
     f"          mean_max_recall\nprotocol      full  a_b%&\nhico-ko      12.35   6.00\n{NOTE}\n{SETTINGS}\n"),
    ("md",
     "| protocol | mean_max_recall full | mean_max_recall a_b%&amp; |\n| --- | ---: | ---: |\n"
     f"| hico-ko | 12.35 | 6.00 |\n\n{NOTE}\n\n{SETTINGS}\n"),
    ("latex",
     "\\begin{tabular}{lrr}\n\\toprule\n"
     " & \\multicolumn{2}{c}{mean max recall} \\\\\n\\cmidrule(lr){2-3}\n"
     "protocol & full & a\\_b\\%\\& \\\\\n"
     "\\midrule\nhico-ko & 12.35 & 6.00 \\\\\n\\bottomrule\n\\end{tabular}\n"
     f"\\par{{\\footnotesize {NOTE}}}\n% {SETTINGS}\n"),
    ("csv",
     "metric,subset,value,protocol,signature,note\n"
     f"mean_max_recall,full,12.345,hico-ko,protocol:hico-ko|labels:derived,{NOTE}\n"
     f"mean_max_recall,a_b%&,6.0,hico-ko,protocol:hico-ko|labels:derived,{NOTE}\n"),
])  # fmt: skip
def test_notations(notation: str, text: str) -> None:
    assert render(ROWS, notation).decode() == text
    assert render([], notation) == b""


def test_rows_without_a_metric() -> None:
    assert render([{"label": "a", "pos": "v"}, {"label": "bc"}], "table") == b"label  pos\na      v\nbc\n"
