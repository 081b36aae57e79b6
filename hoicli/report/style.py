"""The style sheet of a report: screens wide and narrow, light and dark, and paper."""

from __future__ import annotations

from hoicli.figures.drawing import STYLE as DRAWING_STYLE
from hoicli.figures.styles import LOOKS

_INKS = "\n".join(f".{name} {{ --ink: {style.colour}; }}" for name, style in LOOKS.items())

_COLOURS = """
:root { color-scheme: light dark; --paper: #fff; --text: #1c1e21; --soft: #5d6470; --line: #dde1e6; --band: #f6f7f9;
  --link: #0b5fa5; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181c; --text: #e6e8eb; --soft: #a3abb6; --line: #343a43; --band: #1d2127; --link: #7cc0ff; }
}
"""

_DARK_INKS = """
@media screen and (prefers-color-scheme: dark) {
  .e-interaction { --ink: #2079c4; } .e-human_box { --ink: #8ad0f7; } .s0 { --ink: #3d9be0; }
  .e-both_boxes, .s1 { --ink: #e8743b; }
  .e-true_positive, .s2 { --ink: #1bb98c; } .e-false_negative { --ink: #c4c9d0; } .s6 { --ink: #e6e8eb; }
  .e-false_positive { --ink: #15181c; }
}
"""
"""The same hues where dark ones would drown."""

_PAGE = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 1.75rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.75rem 0 .5rem; font-size: 1.3rem; line-height: 1.25; }
p { margin: .5rem 0; max-width: 46rem; }
header p, .facts { color: var(--soft); }
a { color: var(--link); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .875em; }
code { overflow-wrap: anywhere; }
.headlines { display: flex; flex-wrap: wrap; gap: 1rem 2.25rem; margin: 1.25rem 0; }
.headlines dt { color: var(--soft); font-size: .875rem; }
.headlines dd { margin: 0; color: var(--soft); font-size: .8125rem; max-width: 11rem; line-height: 1.35; }
.headlines .big { color: var(--text); font-size: 2rem; font-weight: 600; line-height: 1.15;
  font-variant-numeric: tabular-nums; letter-spacing: -.01em; }
.big .interval { font-weight: 400; letter-spacing: 0; font-size: .9rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 0; padding: .5rem 0; list-style: none;
  border: solid var(--line); border-width: 1px 0; font-size: .9375rem; }
.table { margin: 1.25rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
.caption { margin: 0 0 .35rem; font-size: .875rem; font-weight: 600; }
th, td { padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: baseline; font-weight: 400; }
thead th { color: var(--soft); white-space: nowrap; vertical-align: bottom; }
thead tr:last-child > * { border-bottom: 1px solid var(--soft); }
thead .group { text-align: center; padding: 0 0 0 1.25rem; color: var(--text); }
tbody tr:nth-child(even) > * { background: var(--band); }
tbody > tr > * { border-bottom: 1px solid var(--line); }
tbody th { white-space: nowrap; }
td.long { min-width: 9rem; max-width: 30rem; overflow-wrap: anywhere; }
.n { text-align: right; white-space: nowrap; padding: .25rem .25rem .25rem .75rem; }
.n.first { padding-left: 1.5rem; }
.interval { color: var(--soft); font-size: .75rem; display: block; }
.bar { display: inline-block; width: 4rem; height: .6rem; margin-left: .5rem; background: var(--line); }
.bar i { display: block; height: 100%; background: #0072B2; }
.mark { display: inline-block; width: .75em; height: .75em; margin-right: .5em; background: var(--ink);
  border: 1px solid var(--soft); }
details { margin: 1rem 0; }
summary { cursor: pointer; font-weight: 600; font-size: .875rem; padding: .35rem 0; }
pre { overflow-x: auto; padding: .75rem 1rem; background: var(--band); border: 1px solid var(--line);
  border-radius: 4px; line-height: 1.6; }
pre code { display: block; white-space: pre; font-size: .8125rem; overflow-wrap: normal; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1.5rem 2.5rem;
  margin: 1.5rem 0; }
figure { margin: 0; max-width: 26rem; min-width: 0; }
figcaption { color: var(--soft); font-size: .875rem; margin-top: .5rem; }
.chart { display: block; width: 100%; height: auto; font-size: 12px; font-variant-numeric: tabular-nums; }
.chart text { fill: var(--text); }
.chart .note, .chart .value { fill: var(--soft); }
.chart rect, .chart circle, .chart polygon { fill: var(--ink); stroke: var(--paper); stroke-width: .5; }
.chart .e-false_positive { stroke: var(--soft); stroke-width: 1; }
.chart .line { fill: none; stroke: var(--ink); stroke-width: 1.75; }
.chart .whisker { stroke: var(--ink); stroke-width: 1.75; }
.chart .axis { stroke: var(--soft); } .chart .grid { stroke: var(--line); }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 1.25rem;
  margin: 1rem 0; align-items: start; }
.card { min-width: 0; font-size: .875rem; }
.card p { margin: .3rem 0 0; overflow-wrap: anywhere; }
.truth { color: var(--soft); }
.facts { font-size: .8125rem; }
"""

_PAPER = """
@media (max-width: 30rem) {
  body { padding: 1.25rem 1rem 3rem; }
  .headlines { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
  .headlines .big { font-size: 1.875rem; }
}
@page { margin: 16mm 14mm; }
@media print {
  :root { color-scheme: light; --paper: #fff; --text: #000; --soft: #444; --line: #ccc; --band: #f6f6f6;
    --link: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h1 { font-size: 18pt; } h2 { font-size: 13pt; margin-top: 1.6rem; }
  h2, h3, h2 + p, .caption, summary { break-after: avoid; }
  p, figure, .card, .headlines, tr, pre { break-inside: avoid; }
  .interval { font-size: 7pt; } figcaption, .facts, .card { font-size: 8.5pt; }
  .scroll { overflow: visible; } .table { break-inside: avoid; }
  table { font-size: 8pt; }
  .n { padding-left: .5rem; } .n.first { padding-left: .9rem; }
  .figures { grid-template-columns: 1fr 1fr; gap: 1rem 2rem; }
  .gallery { grid-template-columns: repeat(3, 1fr); gap: .75rem; }
  pre { overflow: visible; } pre code { white-space: pre-wrap; overflow-wrap: anywhere; }
  details:not([open]) > summary::after { content: " (folded: open it on the screen to have it on paper)";
    font-weight: 400; color: #444; }
  summary { list-style: none; }
  .mark, .bar, .bar i, tbody tr > * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""

STYLE = f"{_COLOURS}{_INKS}{_DARK_INKS}{_PAGE}{DRAWING_STYLE}{_PAPER}"
"""All of it. What is for paper comes last, for it overrides."""
