/* The views: what each needs of the data, and what it draws: [words of the status line, elements]. */

const CARDS = 24, LINES = 100, CLASSES = 1000;

/* A selection is made once for a filter. */
let selected = { key: "", found: null };
function selection() {
  const { view, by, page, sort, image, row, hide, side, ...filter } = state;
  const key = JSON.stringify(filter);
  if (selected.key !== key) selected = { key, found: query.select(modelNumber(), state), orders: {} };
  return selected;
}
function itemsInOrder() {
  const { found, orders } = selection();
  if (!orders[state.sort]) orders[state.sort] = query.ordered(found, state.sort);
  return orders[state.sort];
}

const ofModels = make => facts.models.map((model, at) => make(model, at));
const two = () => facts.models.length > 1;
const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

function classesView() {
  const wanted = query.classesOf(state);
  const numbers = facts.classes.map((_, number) => number).filter(number => wanted[number] &&
    facts.models[0].ap[number] !== null);
  const best = number => facts.types.map((_, type) => [gainOf(modelNumber(), number, type) || 0, type])
    .reduce((one, other) => other[0] > one[0] ? other : one);
  const lines = numbers.map(number => ({ number, name: className(number), truth: facts.positives[number],
    ap: ofModels(model => model.ap[number]), best: best(number) }));
  const values = { name: line => line.name, gt: line => line.truth, apa: line => line.ap[0], apb: line => line.ap[1],
    diff: line => line.ap[1] - line.ap[0], gain: line => line.best[0] };
  const by = state.by || "apa", value = values[by.replace(/^-/, "")] || values.apa, sign = by.startsWith("-") ? -1 : 1;
  lines.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return (typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : a - b) * sign || other.truth - one.truth ||
      one.number - other.number;
  });
  const columns = [
    { head: "class", sort: "name", cell: line => linkTo({ view: "class", class: String(line.number), by: "" }, line.name) },
    { head: "GT", number: true, sort: "gt", cell: line => whole(line.truth) },
    { head: two() ? "AP A" : "AP", number: true, sort: "apa", cell: line => [fixed(line.ap[0]), two() ? null : bar(line.ap[0] / 100)] },
    ...(two() ? [
      { head: "AP B", number: true, sort: "apb", cell: line => fixed(line.ap[1]) },
      { head: `B ${MINUS} A`, number: true, sort: "diff", cell: line => fixed(line.ap[1] - line.ap[0], 2, true) },
    ] : []),
    { head: `largest gain${two() ? ` of ${letter(modelNumber())}` : ""}`, number: true, sort: "gain", cell: line => fixed(line.best[0], 2, true) },
    { head: "by fixing", cell: line => line.best[0] > 0 ? linkTo({ view: "errors", class: String(line.number),
      type: typeName(line.best[1]), verb: "", object: "" }, mark(line.best[1]), typeWords(line.best[1])) : DASH },
  ];
  const page = pageOf(lines.length, CLASSES);
  const means = ofModels((model, at) => Object.entries(model.mAP).map(([subset, value]) =>
    [`mAP ${subset.replaceAll("_", "-")}${two() ? `, ${letter(at)}` : ""}`, fixed(value)]));
  return [`${whole(lines.length)} ${lines.length === 1 ? "class" : "classes"} with ground truth`,
    tiles(means.flat()),
    gainsTable(),
    table("AP of each class", columns, lines.slice((page - 1) * CLASSES, page * CLASSES), { by: "apa" }),
    pager(lines.length, CLASSES),
  ];
}

/* What fixing each type would give, over all classes. */
function gainsTable() {
  const overall = values => values && values[facts.every];
  const most = Math.max(...ofModels(model => facts.types.map(([name]) => overall(model.gains[name]) || 0)).flat(), 1e-9);
  const rows = facts.types.map((_, type) => type).filter(type => type > 0);
  const columns = [
    { head: "type", cell: type => linkTo({ view: "errors", type: typeName(type) }, mark(type), typeWords(type)) },
    ...ofModels((model, at) => [
      { head: two() ? `errors ${letter(at)}` : "errors", number: true, cell: type => whole(overall(model.counts[typeName(type)])) },
      { head: `delta mAP${two() ? ` ${letter(at)}` : ""}`, number: true, cell: type => {
        const gain = overall(model.gains[typeName(type)]);
        return [fixed(gain, 2, true), bar(gain / most)];
      } },
    ]).flat(),
  ];
  return table("Errors of each type, and what fixing the type would give in points of mAP", columns, rows);
}

/* The types of what the filter leaves but for its type, each a switch of the filter; gains of a class, or of all. */
function typesTable(found, number = null) {
  const model = facts.models[found.model], chosen = new Set(state.type === "" ? [] : state.type.split(","));
  const gain = type => number === null ? (model.gains[typeName(type)] || {})[facts.every] : gainOf(found.model, number, type);
  const rows = facts.types.map((_, type) => type).filter(type => type > 0 || number !== null || chosen.has("true_positive"))
    .sort((one, other) => (gain(other) || 0) - (gain(one) || 0));
  const most = Math.max(...rows.map(type => gain(type) || 0), 1e-9);
  return table(number === null ? "Types" : "Its errors by type", [
    { head: "type", cell: type => el("button", { type: "button", class: "type", "data-key": `type-${typeName(type)}`,
      "aria-pressed": String(chosen.has(typeName(type))),
      onclick: () => go({ type: chosen.has(typeName(type)) ? "" : typeName(type), page: "" }) },
      mark(type), typeWords(type)) },
    { head: "here", number: true, cell: type => whole(found.every[type]) },
    { head: number === null ? "delta mAP" : "delta AP", number: true, cell: type => type === 0 ? DASH :
      [fixed(gain(type) ?? null, 2, true), bar((gain(type) || 0) / most)] },
  ], rows);
}

/* The classes or images with most of a selection. */
function mostOf(counts, caption, head, name, link, many = 10) {
  const rows = Array.from(counts.keys()).filter(at => counts[at]).sort((one, other) => counts[other] - counts[one] || one - other);
  return rows.length ? table(`${caption}${rows.length > many ? `: the first ${many} of ${whole(rows.length)}` : ""}`, [
    { head, cell: at => linkTo(link(at), name(at)) },
    { head: "errors", number: true, cell: at => whole(counts[at]) },
  ], rows.slice(0, many)) : null;
}

function cardsOf(items) {
  const page = pageOf(items.length, CARDS), begin = (page - 1) * CARDS;
  return [
    el("div", { class: "gallery" }, Array.from(items.subarray(begin, begin + CARDS), item => card(modelNumber(), item))),
    pager(items.length, CARDS),
  ];
}
const leftWords = found => `${plural(found.count, state.type === "true_positive" ? "prediction" : "error")} in ` +
  plural(found.byImage.reduce((sum, count) => sum + (count > 0), 0), "image");

function errorsView() {
  const { found } = selection(), items = itemsInOrder();
  const only = state.class === "" ? null : el("p", { class: "only" }, "Of the class ", linkTo({ view: "class" }, className(Number(state.class))), " only. ",
    el("button", { type: "button", "data-key": "every-class", onclick: () => go({ class: "", page: "" }) }, "All classes"));
  return [`${leftWords(found)}${two() ? ` of ${letter(found.model)}` : ""}`, only,
    el("div", { class: "columns" }, typesTable(found, state.class === "" ? null : Number(state.class)),
      mostOf(found.byClass, "Classes with most of them", "class", className, at => ({ view: "class", class: String(at), by: "" })),
      mostOf(found.byImage, "Images with most of them", "image", imageName, at => ({ view: "image", image: imageName(at) }))),
    el("h2", {}, "Errors"), legend(), items.length ? cardsOf(items) : nothing()];
}
const nothing = () => filtered() ? el("p", {}, "Nothing is left by these filters. ",
  el("button", { type: "button", onclick: () => go(cleared()) }, "Clear them")) : el("p", {}, "There are none.");
const legend = () => el("p", { class: "truth" }, "Ground truth is cyan, the prediction red; the subject\u2019s box has a solid " +
  "line, the object\u2019s a dashed one. AP in a card is what fixing all errors of its type adds to its class.");

function classView() {
  const number = Number(state.class), { found } = selection(), items = itemsInOrder();
  const facts_ = ofModels((model, at) => {
    const count = name => (model.class_counts[name] || [])[number];
    return [
      [`AP${two() ? ` ${letter(at)}` : ""}`, fixed(model.ap[number]), model.name],
      [`found${two() ? ` ${letter(at)}` : ""}`, `${whole(count("true_positive"))}`, `of ${whole(facts.positives[number])} annotated`],
    ];
  }).flat();
  const series = ofModels((model, at) => {
    const points = query.curve(at, number), last = points[points.length - 1];
    return { name: model.name, look: `s${at}`, points,
      last: last ? `: ${(100 * last.recall).toFixed(1)} % found at a precision of ${(100 * last.precision).toFixed(1)} %, score ${last.score.toFixed(3)}` : ": nothing found" };
  });
  return [leftWords(found),
    el("h2", { class: "name" }, className(number)), tiles(facts_),
    el("div", { class: "columns" },
      curveChart(series, `Precision over recall of ${className(number)}, protocol ${facts.protocol}`),
      typesTable(found, number),
      mostOf(found.byImage, "Images with most of them", "image", imageName, at => ({ view: "image", image: imageName(at) }))),
    el("p", {}, linkTo({ view: "errors" }, "All of its errors"), " \u00b7 ", linkTo({ view: "images" }, "its images"),
      two() ? [" \u00b7 ", linkTo({ view: "compare" }, "A and B on it")] : null),
    el("h2", {}, "Errors"), legend(), items.length ? cardsOf(items) : nothing()];
}

/* Images by how much of the selection they have; without a filter also those without errors. */
function imagesInOrder() {
  const { found } = selection();
  if (!selected.images) {
    selected.images = Array.from(found.byImage.keys()).filter(at => found.byImage[at])
      .sort((one, other) => found.byImage[other] - found.byImage[one] || one - other);
  }
  return selected.images;
}

function imagesView() {
  const { found } = selection(), images = imagesInOrder(), state_ = ofModels((_, at) => ofModel(at, "state"));
  const truth = new Int32Array(facts.images), hit = state_.map(() => new Int32Array(facts.images));
  column("truth.image").forEach((image, row) => {
    truth[image]++;
    state_.forEach((each, at) => { hit[at][image] += each[row] === 0; });
  });
  const values = { name: image => imageName(image), errors: image => found.byImage[image], gt: image => truth[image],
    a: image => truth[image] - hit[0][image], b: image => two() ? truth[image] - hit[1][image] : 0 };
  const by = state.by || "-errors", value = values[by.replace(/^-/, "")] || values.errors, sign = by.startsWith("-") ? -1 : 1;
  const rows = by === "-errors" ? images : [...images].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return (a < b ? -1 : a > b ? 1 : 0) * sign || one - other;
  });
  const page = pageOf(rows.length, LINES);
  return [leftWords(found), table("Images of what the filter leaves", [
    { head: "image", sort: "name", cell: image => linkTo({ view: "image", image: imageName(image), by: "" }, imageName(image)) },
    { head: "errors here", number: true, sort: "errors", cell: image => whole(found.byImage[image]) },
    { head: "GT", number: true, sort: "gt", cell: image => whole(truth[image]) },
    ...ofModels((_, at) => ({ head: `not found${two() ? ` by ${letter(at)}` : ""}`, number: true, sort: "ab"[at],
      cell: image => whole(truth[image] - hit[at][image]) })),
  ], rows.slice((page - 1) * LINES, page * LINES), { by: "-errors" }), pager(rows.length, LINES), rows.length ? null : nothing()];
}

const SIDES = { a: "A right, B wrong", b: "B right, A wrong", both: "both right", none: "both wrong" };

function compareView() {
  const { sides, byClass } = query.compared(state), rows = sides[state.side], page = pageOf(rows.length, CARDS / 2);
  const buttons = el("div", { class: "sides", role: "group", "aria-label": "Who is right" }, Object.entries(SIDES).map(([side, words]) =>
    el("button", { type: "button", "data-key": `side-${side}`, "aria-pressed": String(side === state.side),
      onclick: () => go({ side, page: "" }) }, words, " ", el("b", {}, whole(sides[side].length)))));
  const numbers = byClass.map((_, number) => number).filter(number => byClass[number].a || byClass[number].b)
    .sort((one, other) => Math.abs(byClass[other].a - byClass[other].b) - Math.abs(byClass[one].a - byClass[one].b) || one - other);
  return [`${plural(rows.length, "ground-truth triplet")}: ${SIDES[state.side]}`,
    el("p", {}, `A is ${facts.models[0].name}, B is ${facts.models[1].name}. A model is right about a ground truth that one of ` +
      `its predictions finds${state.from === "" ? "" : ` with a score of at least ${Number(state.from)}`}.`),
    buttons,
    el("div", { class: "gallery pairs" }, rows.slice((page - 1) * CARDS / 2, page * CARDS / 2).map(pairCard)),
    pager(rows.length, CARDS / 2), rows.length ? null : nothing(),
    numbers.length ? table(`Classes where they differ most${numbers.length > LINES ? `: the first ${LINES} of ${whole(numbers.length)}` : ""}`, [
      { head: "class", cell: number => linkTo({ class: String(number), view: "class", by: "" }, className(number)) },
      { head: SIDES.a, number: true, cell: number => whole(byClass[number].a) },
      { head: SIDES.b, number: true, cell: number => whole(byClass[number].b) },
      { head: "AP A", number: true, cell: number => fixed(facts.models[0].ap[number]) },
      { head: "AP B", number: true, cell: number => fixed(facts.models[1].ap[number]) },
    ], numbers.slice(0, LINES)) : null];
}

/* A ground truth, and what each model has for it: what finds it, else what could have become it. */
function pairCard(row) {
  const image = column("truth.image")[row], name = className(column("truth.interaction")[row]);
  const half = model => {
    const by = ofModel(model, "by")[row], type = ofModel(model, "state")[row];
    const item = by < 0 ? ~row : by, said = told(model, item);
    said.truth = row;
    said.truthName = name;
    const words = by < 0 ? typeWords(type) : `${typeWords(type)}: ${said.name}`;
    return el("div", {},
      el("a", { href: addressOf({ ...state, view: "image", image: imageName(image), model: "ab"[model], row: String(item), page: "", class: "" }),
        "aria-label": `${letter(model)}: ${words}; open its image` }, scene(image, shapesOf(model, item, said))),
      el("p", {}, el("b", {}, `${letter(model)} `), mark(type), words),
      el("p", { class: "facts" }, by < 0 ? "no prediction finds it or could" : said.facts.join(", ")));
  };
  return el("article", { class: "card" }, el("p", { class: "truth" }, `truth: ${name}; ${imageName(image)}`),
    el("div", { class: "halves" }, half(0), half(1)));
}

const listNeeds = () => query.needs(modelNumber(), state);
const VIEWS = {
  classes: { needs: () => ["facts"], draw: classesView },
  class: { needs: () => [...listNeeds(), ...cardNeeds(modelNumber()),
    ...ofModels((_, at) => ["interaction", "error", "score"].map(name => `model${at}.${name}`)).flat()], draw: classView },
  errors: { needs: () => [...listNeeds(), ...cardNeeds(modelNumber())], draw: errorsView },
  images: { needs: () => [...listNeeds(), ...ofModels((_, at) => `model${at}.state`)], draw: imagesView },
  image: { needs: () => [...listNeeds(), ...ofModels((_, at) => [...cardNeeds(at), `model${at}.state`, `model${at}.by`]).flat()],
    draw: () => imageView() },
  compare: { needs: () => [...query.comparedNeeds(state), ...cardNeeds(0), ...cardNeeds(1)], draw: compareView },
};
