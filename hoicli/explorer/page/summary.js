/* The first view: what the numbers say, and the tables to hand in. All of it is of all data. */

const words = cell => Array.isArray(cell) ? el("a", { href: cell[1], class: cell[2] || null }, visible(cell[0]))
  : visible(cell);

function summaryView() {
  const large = facts.tiles.map(([label, value, note]) => [visible(label), value, note && `${note} (95 %)`]);
  return ["All data",
    el("h2", { class: "first" }, "What the numbers say"),
    el("div", { class: "first" },
      el("div", {},
        el("ul", { class: "findings" }, facts.findings.map(cells => el("li", {}, cells.map(words)))),
        large.length > 0 && el("p", { class: "caption" }, `mAP by protocol ${visible(facts.main)}`),
        large.length > 0 && tiles(large)),
      curveChart((at, { curve }) => curve.map(([recall, precision]) => ({ recall, precision })),
        `Precision over recall, all classes in one list by score, protocol ${visible(facts.protocol)}`)),
    el("div", { class: "sheets" }, facts.tables.map(summaryTable)),
    el("h2", {}, "What these numbers are"),
    el("ul", { class: "made" }, facts.models.map((model, at) => el("li", {}, el("b", {}, modelName(at)), ": ",
      `${whole(model.predictions)} predictions that count${model.uncounted ? `, ${whole(model.uncounted)} that do not` : ""}. `,
      model.signatures.map(text => [el("br"), el("code", {}, text)])))),
    el("p", {}, "They are the numbers of ", ["eval", "compare", "diagnose --per-class", "confusion"].map((name, at) =>
      [at ? ", " : "", el("code", {}, `hoicli ${name}`)]), ", to the digit."),
  ];
}

/* A table as summary.py makes it; the columns in `bars` are drawn to a common scale, too. */
function summaryTable({ caption, heads, lines, names, above, bars, notes }) {
  const text = cell => Array.isArray(cell) ? cell[0] : cell,
    value = cell => Number(text(cell).replace(/[+,]/g, "")) || 0;
  const most = Math.max(1e-9, ...lines.flatMap(line => (bars || []).map(at => value(line[at]))));
  const columns = heads.map((head, at) => ({ head: visible(head), number: at >= names,
    cell: line => (bars || []).includes(at)
      ? bar(value(line[at]) / most, words(line[at]), bars.length > 1 ? bars.indexOf(at) : null) : words(line[at]) }));
  return table(caption, columns, lines, { above: above && above.map(visible), notes: notes || [] });
}
