/* Elements. Text of the data goes into text nodes and attributes alone, never into markup. */

const absent = value => value === null || value === undefined || value === false;
function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (absent(value)) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter(child => !absent(child)));
  return element;
}
const el = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/* Numbers as hoicli's tables print them. */
const DASH = "\u2013", MINUS = "\u2212";
const whole = value => absent(value) ? DASH : value.toLocaleString("en-US");
function fixed(value, digits = 2, signed = false) {
  if (absent(value)) return DASH;
  const text = value.toFixed(digits), nothing = !/[1-9]/.test(text);
  if (nothing) return text.replace("-", "");
  return (signed && value > 0 ? "+" : "") + text.replace("-", MINUS);
}

const mark = type => el("i", { class: `mark e-${typeName(type)}` });

/* A link to another view; what it does not name keeps the filter. */
function linkTo(changes, ...children) {
  return el("a", { href: addressOf({ ...state, page: "", ...changes }) }, ...children);
}

/* A table in a box that scrolls sideways. columns: {head, number, sort, cell(row)}; cells are text or elements. A head
   with `sort` (a key, its direction first) is a button that orders the rows by the address. above: groups over heads,
   "" continues the one before. */
function table(caption, columns, rows, { by = "", above = null, notes = [] } = {}) {
  const heads = columns.map(each => {
    const classes = each.number ? "n" : null;
    if (!each.sort) return el("th", { scope: "col", class: classes }, each.head);
    const now = state.by || by, up = now === each.sort, down = now === `-${each.sort}`;
    const next = up ? `-${each.sort}` : down ? each.sort : each.number ? `-${each.sort}` : each.sort;
    return el("th", { scope: "col", class: classes, "aria-sort": up ? "ascending" : down ? "descending" : null },
      el("button", { type: "button", class: "sort", "data-key": `sort-${each.sort}`,
        onclick: () => go({ by: next, page: "" }, true) }, each.head, up ? " \u2191" : down ? " \u2193" : ""));
  });
  const body = rows.map(row => el("tr", {}, columns.map((each, at) => {
    const tag = at === 0 ? "th" : "td";
    return el(tag, { scope: at === 0 ? "row" : null, class: each.number ? "n" : null }, each.cell(row));
  })));
  return el("div", { class: "table" },
    el("p", { class: "caption" }, caption),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("thead", {}, above && groups(above), el("tr", {}, heads)), el("tbody", {}, body))),
    notes.map(text => el("p", { class: "truth" }, text)));
}

/* The line of groups over the heads of a table. */
function groups(above) {
  const cells = [];
  above.forEach((words, at) => {
    if (words || !at || cells[cells.length - 1].textContent === "") cells.push(el(words ? "th" : "td", words
      ? { scope: "colgroup", class: "group" } : {}, words));
    else cells[cells.length - 1].colSpan++;
  });
  return el("tr", {}, cells);
}

/* A bar for a share in [0, 1], in the colour of a model where there are two, and behind it the number that it draws. */
function bar(share, number, model = null) {
  const inner = el("i", { class: model === null ? null : `s${model}` });
  inner.style.width = `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
  return [el("i", { class: "bar", "aria-hidden": "true" }, inner), el("span", {}, number)];
}

/* The rows in the order of the address, `by`: a key of `values` (key -> value of a row), behind a minus downwards; rows
   that are alike as `ties` says. */
function sortedBy(rows, by, values, ties) {
  const value = Object.hasOwn(values, by.replace(/^-/, "")) ? values[by.replace(/^-/, "")] : Object.values(values)[0];
  const sign = by.startsWith("-") ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return (a < b ? -1 : a > b ? 1 : 0) * sign || ties(one, other);
  });
}

function tiles(items) {
  return el("dl", { class: "headlines" }, items.map(([label, value, note]) =>
    el("div", {}, el("dt", {}, label), el("dd", { class: "big" }, value), note && el("dd", {}, note))));
}

/* Which page of how many, with buttons; the keys of the images turn these pages, too. A turned page begins at #list. */
function pager(count, size) {
  const pages = Math.max(1, Math.ceil(count / size)), page = pageOf(count, size);
  const button = (words, to, key) => el("button", { type: "button", disabled: to < 1 || to > pages, "data-key": key,
    onclick: () => turn(to) }, words);
  if (pages === 1) return null;
  return el("div", { class: "pager" }, button("Previous", page - 1, "previous"),
    el("span", {}, `page ${whole(page)} of ${whole(pages)}`), button("Next", page + 1, "next"));
}
const pageOf = (count, size) => Math.min(Math.max(1, Number(state.page) || 1), Math.max(1, Math.ceil(count / size)));
const turn = page => go({ page: page > 1 ? String(page) : "" }, false, "list");

/* Precision over recall, a curve for each model. pointsOf(model, its facts): the points {recall, precision, score} of
   its curve; where they have scores, the legend names the last. */
function curveChart(pointsOf, caption) {
  const width = 420, height = 300, left = 46, top = 10, right = 14, bottom = 42;
  const x = recall => left + recall * (width - left - right),
    y = precision => top + (1 - precision) * (height - top - bottom);
  const lines = [0, 0.25, 0.5, 0.75, 1].map(at => [
    svg("line", { class: "grid", x1: x(at), x2: x(at), y1: y(0), y2: y(1) }),
    svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(at), y2: y(at) }),
    svg("text", { class: "note", x: x(at), y: y(0) + 15, "text-anchor": "middle" }, String(at * 100)),
    svg("text", { class: "note", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, String(at * 100)),
  ]);
  const series = ofModels((at, model) => ({ name: modelName(at), look: `s${at}`, points: pointsOf(at, model) }));
  const curves = series.map(({ points, look }) => {
    const places = points.map(point => `${x(point.recall).toFixed(1)},${y(point.precision).toFixed(1)}`);
    const only = points.length === 1 ? points[0] : null;
    return svg("g", { class: look },
      svg("polyline", { class: "line", points: places.join(" ") }),
      only && svg("circle", { cx: x(only.recall), cy: y(only.precision), r: 4 }));
  });
  return el("figure", {},
    svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": caption }, lines,
      svg("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, "recall (%)"),
      svg("text", { x: 12, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${y(0.5)})` },
        "precision (%)"),
      curves),
    el("figcaption", {}, caption, el("span", { class: "legend" }, series.map(({ name, look, points }) =>
      el("span", {}, el("i", { class: `mark ${look}` }), `${name}: ${reach(points[points.length - 1])}`)))));
}
function reach(last) {
  if (!last) return "nothing found";
  const score = absent(last.score) ? "" : `, score ${last.score.toFixed(3)}`;
  return `in the end ${(100 * last.recall).toFixed(1)} % found at a precision of ${(100 * last.precision).toFixed(1)} %${score}`;
}
