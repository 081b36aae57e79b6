/* One image: its ground truth, what each model found and missed of it, or one prediction that was chosen; the keys go
   from image to image. */

/* The number of an image by its id; the first of those that are left where the address names none, NONE for one that is
   not here. */
const imageNumber = () => {
  if (state.image === "") return imagesInOrder()[0] ?? NONE;
  if (!imageNumber.known) imageNumber.known = new Map(column("images").id.map((id, at) => [id, at]));
  return imageNumber.known.get(state.image) ?? NONE;
};

/* The ground truth of an image. */
function truthsIn(image) {
  const rows = [];
  column("truth.image").forEach((each, row) => { if (each === image) rows.push(row); });
  return rows;
}

/* The predictions of an image that the filter leaves, and all of them. */
function predictionsIn(model, image) {
  const all = query.rowsIn(model, image), error = ofModel(model, "error"), chosen = state.type !== "";
  const keeps = query.keeper(model, filter()), types = query.typesOf(filter()),
    [begin, end] = query.rowsOf(model, filter());
  return { all, left: all.filter(row => row >= begin && row < end && (!chosen || types[error[row]]) && keeps(row)) };
}

function imageView() {
  const image = imageNumber();
  if (image === NONE) {
    return ["No image", state.image === "" ? nothing() : el("p", { class: "problem" },
      `There is no image \u201c${visible(state.image)}\u201d on this page. `,
        linkTo({ view: "images", image: "", row: "" }, "All images"))];
  }
  const order = imagesInOrder(), place = order.indexOf(image), images = column("images");
  const truths = truthsIn(image);
  const chosen = ofModels(at => state.row === "" ? null : chosenItem(at, image));
  const button = (words, by, key) => el("button",
    { type: "button", "data-key": key, disabled: order.length < 2, onclick: () => stepImage(by) }, words);
  const flag = (words, letters, key) => el("button",
    { type: "button", "data-key": `hide-${letters}`,
    "aria-pressed": String(key === "a" ? state.hide.includes(key) : !state.hide.includes(key)),
    onclick: () => toggled(key) }, words);
  const sizes = images.width[image] ? `${images.width[image]} \u00d7 ${images.height[image]} pixels`
    : "of unknown size";
  return [`${place < 0 ? "An image" : `Image ${whole(place + 1)} of ${whole(order.length)}`} of what the filter leaves`,
    el("h2", { class: "name" }, imageName(image)),
    el("p", { class: "facts" }, `${visible(images.file[image] || "without file_name")}, ${sizes}`),
    el("div", { class: "pager" }, button("Previous image", -1, "previous"), button("Next image", 1, "next"),
      flag("boxes", "b", "b"), flag("truth", "g", "g"), flag("predictions", "p", "p"), flag("names", "l", "l"),
        flag("scores", "s", "s"), flag("all predictions", "a", "a")),
    state.row === "" ? overview(image, truths)
      : el("div", { class: two() ? "beside" : "alone" }, ofModels(at => imageFigure(at, image, truths, chosen[at]))),
    truthsTable(image, truths),
    el("div", { class: two() ? "beside" : "alone" }, ofModels(at => predictionsTable(at, image, chosen[at])))];
}

/* The item that is drawn: the address's, where it is of this model and image; else the first that the filter leaves. */
function chosenItem(model, image) {
  const row = state.row === "" ? null : Number(state.row);
  const of = row === null || !Number.isInteger(row) ? null : row >= 0 ? ofModel(model, "image")[row]
    : column("truth.image")[~row];
  if (of === image && (model === modelNumber() || row < 0)) return row;
  const { all, left } = predictionsIn(model, image);
  return left[0] ?? all[0] ?? null;
}

/* The ground truth of an image, and beside it what each model found of it and what it missed. A press on a line of the
   tables below shows that prediction. */
function overview(image, truths) {
  const figure = (shapes, name, words) => el("figure", { class: "large" },
    scene(image, shown("g") || shown("p") ? shapes : [], `${imageName(image)}, ${name}: ${words}`),
    el("figcaption", {}, el("b", {}, name), `: ${words}`));
  return [el("div", { class: "beside" },
    figure(shown("g") ? joined(truthShapes(image, truths)) : [], "Ground truth", plural(truths.length, "triplet")),
    ofModels(at => {
      const shapes = joined(outcomeShapes(at, image, truths)).filter(({ kind }) => shown(kind === "gt" ? "g" : "p"));
      const missed = truths.filter(row => !found(at, row)).length;
      return figure(shapes, modelName(at), `${whole(truths.length - missed)} found, ${whole(missed)} missed`);
    })), el("p", { class: "truth" }, `${OUTCOMES}.`)];
}

function imageFigure(at, image, truths, item) {
  const all = state.hide.includes("a");
  const faint = (kind, prefix, rows) => rows.map(row => ({ kind, pair: pairOf(prefix, image, row), words: "",
    faint: true }));
  const shapes = [...(all && shown("g") ? faint("gt", "truth", truths) : []),
    ...(all && shown("p") ? faint("pr", `model${at}`, predictionsIn(at, image).left) : [])];
  const said = item === null ? null : told(at, item);
  if (said) shapes.push(...shapesOf(at, item, said, true));
  else if (shown("g")) {
    truths.forEach(row => shapes.push({ kind: "gt", pair: pairOf("truth", image, row),
      words: truthName(row) }));
  }
  const words = said ? `${typeWords(said.type)}: ${said.name}` : "no predictions";
  return el("figure", { class: "large" }, scene(image, shapes, `${imageName(image)}, ${words}`),
    el("figcaption", {}, two() && el("b", {}, `${modelName(at)}: `), said && mark(said.type), words,
      said && el("span", { class: "truth" }, `; ${said.beside}`), said &&
        el("span", { class: "facts" }, ` \u00b7 ${said.facts.join(", ")}`)));
}

const found = (model, truth) => ofModel(model, "state")[truth] === 0;
/* What a model has for a ground truth: the prediction that finds it, else the nearest; ~truth where there is none. */
function itemOf(model, truth) {
  const row = found(model, truth) ? ofModel(model, "by")[truth] : query.nearestTo(model, truth);
  return row === NONE ? ~truth : row;
}
/* A ground truth that no prediction is near may still be one that an oracle could repair. */
const lacking = (model, truth) => ofModel(model, "state")[truth] === MISSED() ? typeWords(MISSED())
  : "not found; nothing is near it";

function truthsTable(image, truths) {
  return table(`Ground truth, all of it: ${whole(truths.length)}`, [
    { head: "class", cell: row => linkTo({ view: "class", class: String(column("truth.interaction")[row]), row: "" },
      truthName(row)) },
    ...ofModels(at => ({ head: two() ? modelName(at) : "what became of it", cell: row => {
      const by = itemOf(at, row), type = by < 0 ? MISSED() : ofModel(at, "error")[by];
      const words = found(at, row) ? "found" : by < 0 ? lacking(at, row) : `not found; nearest: ${typeWords(type)}`;
      return el("button", { type: "button", class: "type", "data-key": `truth-${at}-${row}`,
        onclick: () => go({ row: String(by), model: "ab"[at] }, true) }, mark(type), words);
    } })),
  ], truths);
}

function predictionsTable(at, image, item) {
  const { all, left } = predictionsIn(at, image);
  return table(`Predictions${two() ? ` of ${modelName(at)}` : ""}: ${whole(left.length)} of ${whole(all.length)}`, [
    { head: "class", cell: row => el("button",
      { type: "button", class: "type", "data-key": `row-${at}-${row}`, "aria-pressed": String(row === item),
      onclick: () => go({ row: String(row), model: "ab"[at] }, true) }, mark(ofModel(at, "error")[row]),
        subjectWord(`model${at}`, row) + className(ofModel(at, "interaction")[row])) },
    { head: "score", number: true, cell: row => ofModel(at, "score")[row].toFixed(3) },
    { head: "IoU", number: true, cell: row => ["iou_subject",
      "iou_object"].map(name => ofModel(at, name)[row]).filter(value => value >= 0).map(hundredths).join(" / ") ||
      DASH },
    { head: "type", cell: row => typeWords(ofModel(at, "error")[row]) },
  ], left);
}

function stepImage(by) {
  const order = imagesInOrder(), place = order.indexOf(imageNumber());
  if (!order.length) return null;
  const next = place < 0 ? 0 : (place + by + order.length) % order.length;
  return go({ image: imageId(order[next]), row: "" }, true);
}

function stepRow(by) {
  if (state.view !== "image") return null;
  const model = modelNumber(), image = imageNumber(), { left } = predictionsIn(model, image);
  if (!left.length) return null;
  const place = state.row === "" ? NONE : left.indexOf(chosenItem(model, image));
  return go({ row: String(left[(Math.max(place, by > 0 ? -1 : 0) + by + left.length) % left.length]) }, true);
}
