/* The views: what each needs of the data, and what it draws: [words of the status line, elements]. */

const CARDS = 24, LINES = 100;

/* A selection is made once for a filter. */
let selected = { key: "", found: null };
function selection() {
  const { sort, ...wanted } = filter(), key = JSON.stringify([state.model, wanted]);
  if (selected.key !== key) selected = { key, found: query.select(modelNumber(), wanted), orders: {} };
  return selected;
}
function itemsInOrder() {
  const { found, orders } = selection();
  if (!orders[state.sort]) orders[state.sort] = query.ordered(found, state.sort);
  return orders[state.sort];
}

const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : word.endsWith("class") ? "es" : "s"}`;
const ofName = model => two() ? `, ${modelName(model)}` : "";
/* What stands beside gains that do not follow all filters: of scores and IoU no oracle knows, nor of a part that was not
   asked for. */
const gainWords = of => {
  const limits = ["from", "to", "iou", "iouto"].some(name => filter()[name] !== "");
  const { kind, slice } = query.sliceOf(filter()), how = kind === "images"
    ? `; --slice ${visible(facts.slices[slice].name)} computes them` : "";
  const lacks = [!of.ofPart && `all data${how}`, limits && "all scores and IoU"].filter(Boolean);
  return lacks.length ? ` (gains: of ${lacks.join(", ")})` : "";
};
/* The classes that the filter leaves and that have ground truth there. */
function classesLeft(of) {
  const wanted = query.classesOf(filter());
  return facts.classes.map((_, number) => number).filter(number => wanted[number] && of.positives(number));
}

function classesView() {
  const of = query.numbers(), numbers = classesLeft(of), model = modelNumber();
  const best = number => facts.types.map((_, type) => [of.gain(model, number, type) || 0, type])
    .reduce((one, other) => other[0] > one[0] ? other : one);
  const lines = numbers.map(number => ({ number, name: className(number), truth: of.positives(number),
    ap: ofModels(at => of.ap(at, number)), best: best(number) }));
  const sorted = sortedBy(lines, state.by || "apa", { apa: line => line.ap[0], apb: line => line.ap[1],
    name: line => line.name, gt: line => line.truth, diff: line => line.ap[1] - line.ap[0], gain: line => line.best[0] },
    (one, other) => other.truth - one.truth || one.number - other.number);
  const never = MISSED(), toFix = line => line.best[0] > 0 ? line.best[1] : of.count(model, line.number, never)
    ? never : null;
  const columns = [
    { head: "class", sort: "name", cell: line => linkTo({ view: "class", class: String(line.number), by: "" },
      line.name) },
    { head: "GT", number: true, sort: "gt", cell: line => whole(line.truth) },
    ...ofModels(at => ({ head: two() ? `AP ${modelName(at)}` : "AP", number: true, sort: ["apa", "apb"][at],
      cell: line => two() ? fixed(line.ap[at]) : bar(line.ap[at] / 100, fixed(line.ap[at])) })),
    ...(two() ? [{ head: "difference", number: true, sort: "diff",
      cell: line => fixed(line.ap[1] - line.ap[0], 2, true) }] : []),
    { head: `largest gain${ofName(model)}`, number: true, sort: "gain", cell: line => line.best[0] > 0
      ? fixed(line.best[0], 2, true) : DASH },
    { head: "by fixing", cell: line => toFix(line) === null ? DASH
      : linkTo({ view: "errors", class: String(line.number),
      type: typeName(toFix(line)), verb: "", object: "" }, mark(toFix(line)), typeWords(toFix(line))) },
  ];
  const subsets = facts.subsets.map(([subset, members]) => [subset, members.filter(number => numbers.includes(number))])
    .filter(([, members]) => members.length);
  const means = ofModels(at => subsets.map(([subset, members]) => [`mAP ${subset.replaceAll("_", "-")}${ofName(at)}`,
    fixed(query.mean(members, number => of.ap(at, number))), plural(members.length, "class")])).flat();
  return [`${plural(numbers.length, "class")} with ground truth, by protocol ${visible(facts.protocol)}`,
    numbers.length ? [tiles(means), gainsTable(of)] : nothing(),
    numbers.length > 0 && table(`AP of each class${gainWords(of)}`, columns, pageOfLines(sorted), { by: "apa" }),
    pager(lines.length, LINES),
  ];
}
const pageOfLines = lines => {
  const page = pageOf(lines.length, LINES);
  return lines.slice((page - 1) * LINES, page * LINES);
};

/* The classes that the filter leaves and that gains are averaged over. */
function repairedClasses(of) {
  const wanted = query.classesOf(filter()), inMean = new Set(membersOf(facts.every));
  return facts.classes.map((_, number) => number)
    .filter(number => wanted[number] && of.repaired(number) && (state.class !== "" || inMean.has(number)));
}

/* The errors of each type that the filter leaves, those of classes without ground truth, too, and what fixing each type
   would give the other classes; what gives most comes first. */
function gainsTable(of) {
  const wanted = query.classesOf(filter()), averaged = repairedClasses(of);
  const rows = facts.types.map((_, type) => ({ type,
    counts: ofModels(at => wanted.reduce((sum, kept, number) => sum + (kept && of.count(at, number, type)), 0)),
    gains: ofModels(at => of.gainOf(at, averaged, type)) })).slice(1)
    .sort((one, other) => Math.max(...other.gains) - Math.max(...one.gains));
  const most = Math.max(...rows.flatMap(row => row.gains), 1e-9);
  const columns = [
    { head: "type", cell: row => linkTo({ view: "errors", type: typeName(row.type) }, mark(row.type),
      typeWords(row.type)) },
    ...ofModels(at => [
      { head: "errors", number: true, cell: row => whole(row.counts[at]) },
      { head: "gain", number: true, cell: row => bar(row.gains[at] / most, fixed(row.gains[at], 2, true),
        two() ? at : null) },
    ]).flat(),
  ];
  return table(`Errors of each type, and what fixing the type would add to the mAP of ${plural(averaged.length, "class")}${gainWords(of)}`, columns,
    rows, { above: two() ? ["", ...ofModels(at => [modelName(at), ""]).flat()] : null });
}

/* The types of what the filter leaves but for its type, each a switch of the filter; gains of the classes that are left. */
function typesTable(found) {
  const of = query.numbers(), numbers = repairedClasses(of);
  const chosen = new Set(state.type === "" ? [] : state.type.split(","));
  const gains = facts.types.map((_, type) => of.gainOf(found.model, numbers, type));
  const rows = facts.types.map((_, type) => type).filter(type => type > 0 || state.class !== "" ||
    chosen.has("true_positive"))
    .sort((one, other) => (gains[other] || 0) - (gains[one] || 0));
  const most = Math.max(...gains, 1e-9), view = state.view === "class" ? { view: "errors" } : {};
  return table(`${state.class === "" ? "Types" : "Its predictions by type"}${ofName(found.model)}${gainWords(of)}`, [
    { head: "type", cell: type => el("button", { type: "button", class: "type", "data-key": `type-${typeName(type)}`,
      "aria-pressed": String(chosen.has(typeName(type))),
      onclick: () => go({ ...view, type: chosen.has(typeName(type)) ? "" : typeName(type), page: "" }) },
      mark(type), typeWords(type)) },
    { head: "here", number: true, cell: type => whole(found.every[type]) },
    { head: numbers.length === 1 ? "gain in AP" : `gain in mAP of ${plural(numbers.length, "class")}`, number: true,
      cell: type => type === 0 ? DASH : bar((gains[type] || 0) / most, fixed(gains[type], 2, true),
        two() ? found.model : null) },
  ], rows, { notes: state.class === "" ? []
    : ["A gain may come from predictions of other classes, which the repair turns into this one."] });
}

/* The classes or images with most of a selection. */
function mostOf(counts, caption, head, name, link, many = 10) {
  const rows = Array.from(counts.keys()).filter(at => counts[at]).sort((one, other) => counts[other] - counts[one] ||
    one - other);
  return rows.length ? table(`${caption}${rows.length > many ? `: the first ${many} of ${whole(rows.length)}` : ""}`, [
    { head, cell: at => linkTo(link(at), name(at)) },
    { head: "errors", number: true, cell: at => whole(counts[at]) },
  ], rows.slice(0, many)) : null;
}

function cardsOf(items) {
  const page = pageOf(items.length, CARDS), begin = (page - 1) * CARDS;
  return [
    el("div", { class: "gallery" }, Array.from(items.subarray(begin, begin + CARDS),
      item => card(modelNumber(), item))),
    pager(items.length, CARDS),
  ];
}
const leftWords = found => `${plural(found.count, state.type === "true_positive" ? "prediction" : "error")} in ` +
  `${plural(found.byImage.reduce((sum, count) => sum + (count > 0), 0), "image")}${two() ? ` of ${modelName(found.model)}` : ""}`;
const mostImages = found => mostOf(found.byImage, "Images with most of them", "image", imageName,
  at => ({ view: "image", image: imageId(at) }));
const gallery = items => [el("h2", { id: "list" }, "Errors"), legend(), items.length ? cardsOf(items) : nothing()];

function errorsView() {
  const { found } = selection();
  return [leftWords(found),
    el("div", { class: "columns" }, typesTable(found),
      mostOf(found.byClass, "Classes with most of them", "class", className,
        at => ({ view: "class", class: String(at), by: "" })),
      mostImages(found)),
    gallery(itemsInOrder())];
}
const nothing = () => filtered() ? el("p", {}, "Nothing is left by these filters. ",
  el("button", { type: "button", onclick: () => go(cleared()) }, "Clear them")) : el("p", {}, "There are none.");
const legend = () => el("p", { class: "truth" },
  "Ground truth is cyan, the prediction red; the subject\u2019s box has a solid " +
  `line, the object\u2019s a dashed one. AP in a card is what fixing all errors of its type adds to its class${gainWords(query.numbers())}.`);

function classView() {
  const number = Number(state.class), { found } = selection(), of = query.numbers();
  if (!query.classesOf(filter())[number]) return [leftWords(found), el("h2", { class: "name" }, className(number)),
    nothing()];
  const heads = ofModels(at => [
    [`AP${ofName(at)}`, fixed(of.ap(at, number)), `protocol ${visible(facts.protocol)}`],
    [`found${ofName(at)}`, whole(of.count(at, number, 0)), `of ${whole(of.positives(number))} annotated`],
  ]).flat();
  return [leftWords(found),
    el("h2", { class: "name" }, className(number)), tiles(heads),
    el("div", { class: "columns" },
      curveChart(at => query.curve(at, filter()),
        `Precision over recall of ${className(number)}, protocol ${visible(facts.protocol)}`),
      typesTable(found),
      mostImages(found)),
    el("p", {}, linkTo({ view: "errors" }, "All of its errors"), " \u00b7 ", linkTo({ view: "images" }, "its images"),
      two() ? [" \u00b7 ", linkTo({ view: "compare" }, "both models on it")] : null),
    gallery(itemsInOrder())];
}

/* Images by how much of the selection they have; then those that have ground truth of it alone, where no filter asks for
   certain errors. */
function imagesInOrder() {
  const { found } = selection();
  if (!selected.images) {
    const has = new Uint8Array(facts.images);
    if (!onErrors()) for (const row of query.truths(filter())) has[column("truth.image")[row]] = 1;
    selected.images = Array.from(found.byImage.keys()).filter(at => found.byImage[at] || has[at])
      .sort((one, other) => found.byImage[other] - found.byImage[one] || one - other);
  }
  return selected.images;
}
const onErrors = () => ["type", "from", "to", "iou", "iouto"].some(name => filter()[name] !== "");

/* The orders of the images: [key of `by`, words]. */
const IMAGE_ORDERS = () => [["-errors", "most errors"], ["-gt", "most ground truth"],
  ...ofModels(at => [`-${"ab"[at]}`, `most missed${ofName(at)}`]), ["name", "name"]];

function imagesView() {
  const { found } = selection(), images = imagesInOrder(), states = ofModels(at => ofModel(at, "state"));
  const truths = new Map(), missed = states.map(() => new Int32Array(facts.images)), model = found.model;
  for (const row of query.truths(filter())) {
    const image = column("truth.image")[row];
    if (truths.has(image)) truths.get(image).push(row);
    else truths.set(image, [row]);
    states.forEach((each, at) => { missed[at][image] += each[row] !== 0; });
  }
  const truthsOf = image => truths.get(image) || [], by = state.by || "-errors";
  const rows = sortedBy(images, by, { errors: image => found.byImage[image], name: imageName,
    gt: image => truthsOf(image).length, a: image => missed[0][image], b: image => two() ? missed[1][image] : 0 },
    (one, other) => one - other);
  if (!rows.length) return [leftWords(found), nothing()];
  const page = pageOf(rows.length, CARDS), begin = (page - 1) * CARDS;
  return [leftWords(found),
    el("div", { class: "sides", role: "group", "aria-label": "Order" }, IMAGE_ORDERS().map(([key, words]) =>
      el("button", { type: "button", "data-key": `order-${key}`, "aria-pressed": String(key === by),
        onclick: () => go({ by: key, page: "" }, true) }, words))),
    el("p", { class: "truth" }, `${OUTCOMES}${two() ? `, by ${modelName(model)}` : ""}${onErrors()
      ? " (ground truth: of all types, scores and IoU)" : ""}.`),
    el("div", { id: "list", class: "gallery" }, rows.slice(begin, begin + CARDS)
      .map(image => imageCard(model, image, truthsOf(image), found.byImage[image]))),
    pager(rows.length, CARDS)];
}
const OUTCOMES = "Green: found, the boxes of the prediction. Cyan: missed, the boxes of the ground truth";

/* Who is right, in the address; in words with the models' names. */
const SIDES = {
  a: () => `${modelName(0)} right, ${modelName(1)} wrong`, b: () => `${modelName(1)} right, ${modelName(0)} wrong`,
  both: () => "both right", none: () => "both wrong",
};

function compareView() {
  const { sides, byClass } = query.compared(filter()), rows = sides[state.side],
    page = pageOf(rows.length, CARDS / 2), of = query.numbers();
  const buttons = el("div", { class: "sides", role: "group", "aria-label": "Who is right" },
    Object.entries(SIDES).map(([side, said]) =>
    el("button", { type: "button", "data-key": `side-${side}`, "aria-pressed": String(side === state.side),
      onclick: () => go({ side, page: "" }) }, said(), " ", el("b", {}, whole(sides[side].length)))));
  const numbers = byClass.map((_, number) => number).filter(number => byClass[number].a || byClass[number].b)
    .sort((one, other) => Math.abs(byClass[other].a - byClass[other].b) - Math.abs(byClass[one].a - byClass[one].b) ||
      one - other);
  const scores = state.from === "" ? "" : ", of all scores";
  return [`${plural(rows.length, "ground-truth triplet")}: ${SIDES[state.side]()}`,
    el("p", {}, "A model is right about a ground truth that one of its predictions finds" +
      `${state.from === "" ? "" : ` with a score of at least ${Number(state.from)}`}.`),
    buttons, el("div", { id: "list", class: "gallery pairs" },
      rows.slice((page - 1) * CARDS / 2, page * CARDS / 2).map(pairCard)),
    pager(rows.length, CARDS / 2), rows.length ? null : el("p", {}, "There are none; the buttons count the others."),
    numbers.length ? table(`Classes where they differ most${numbers.length > LINES ? `: the first ${LINES} of ${whole(numbers.length)}` : ""}`, [
      { head: "class", cell: number => linkTo({ class: String(number), view: "class", by: "" }, className(number)) },
      { head: SIDES.a(), number: true, cell: number => whole(byClass[number].a) },
      { head: SIDES.b(), number: true, cell: number => whole(byClass[number].b) },
      ...ofModels(at => ({ head: `AP ${modelName(at)}${scores}`, number: true,
        cell: number => fixed(of.ap(at, number)) })),
    ], numbers.slice(0, LINES)) : null];
}

/* A ground truth, and what each model has for it: what finds it, else the nearest prediction. */
function pairCard(row) {
  const image = column("truth.image")[row], name = truthName(row);
  const half = model => {
    const item = itemOf(model, row), said = { ...told(model, item), truth: row, truthName: name };
    const what = item < 0 ? lacking(model, row) : `${typeWords(said.type)}: ${said.name}`;
    return el("div", {},
      el("a", { href: addressOf({ ...state, view: "image", image: imageId(image), model: "ab"[model],
        row: String(item), page: "", class: "" }),
        "aria-label": `${modelName(model)}: ${what}; open its image` }, scene(image, shapesOf(model, item, said))),
      el("p", {}, el("b", {}, modelName(model))), el("p", {}, mark(said.type), what),
      item < 0 ? null : el("p", { class: "facts" }, said.facts.join(", ")));
  };
  return el("article", { class: "card" }, el("p", { class: "truth" }, `truth: ${name}; ${imageName(image)}`),
    el("div", { class: "halves" }, half(0), half(1)));
}

const listNeeds = () => [...query.needs(modelNumber(), filter()), ...query.numbersNeeds()];
const VIEWS = {
  summary: { needs: () => ["facts"], draw: summaryView },
  classes: { needs: () => query.numbersNeeds(), draw: classesView },
  class: { needs: () => [...listNeeds(), ...cardNeeds(modelNumber()),
    ...ofModels(at => query.needs(at, filter())).flat()], draw: classView },
  errors: { needs: () => [...listNeeds(), ...cardNeeds(modelNumber())], draw: errorsView },
  images: { needs: () => [...listNeeds(), ...cardNeeds(modelNumber()), ...ofModels(at => `model${at}.state`),
    `model${modelNumber()}.by`], draw: imagesView },
  image: { needs: () => [...listNeeds(), ...ofModels(at => [...query.needs(at, filter()), ...cardNeeds(at),
    `model${at}.state`, `model${at}.by`]).flat()],
    draw: () => imageView() },
  compare: { needs: () => [...query.comparedNeeds(filter()), ...cardNeeds(0), ...cardNeeds(1)], draw: compareView },
};
