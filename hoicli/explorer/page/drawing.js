/* Errors drawn on their images, a card each. */

const CARD = 340, TEXT = 13;
const digits = (value, count = 6) => String(Number(value.toPrecision(count)));
const loaded = new Map();  // image -> [width, height] of a picture whose record says no size

/* [x1, y1, x2, y2] of a box by its place in its image; prefix: "truth" or "model0". */
function boxOf(prefix, image, place) {
  const at = 4 * (column(`${prefix}.start`)[image] + place);
  return Array.from(column(`${prefix}.boxes`).subarray(at, at + 4));
}
function pairOf(prefix, image, row) {
  const subject = column(`${prefix}.subject`)[row], object = column(`${prefix}.object`)[row];
  return object < 0 ? [boxOf(prefix, image, subject)] : [boxOf(prefix, image, subject), boxOf(prefix, image, object)];
}
const boxNeeds = prefix => ["start", "boxes", "subject", "object", ...(facts.subjects ? ["subject_label"] : [])]
  .map(name => `${prefix}.${name}`);
const cardNeeds = model => [...query.numbersNeeds(), ...boxNeeds(`model${model}`), ...boxNeeds("truth"),
  "truth.image", "truth.interaction",
  "images", ...["image", "interaction", "error", "score", "truth", "relation", "iou_subject", "iou_object"]
    .map(name => `model${model}.${name}`)];

/* The size of an image: its record's, in whose pixels the boxes are; else the picture's own; else what holds the boxes. */
function sizeOf(image, pairs) {
  const images = column("images");
  if (images.width[image] && images.height[image]) return [images.width[image], images.height[image]];
  if (loaded.has(image)) return loaded.get(image);
  const boxes = pairs.flat();
  return [2, 3].map(side => Math.max(1, ...boxes.map(box => 1.05 * box[side])));
}

const centre = box => [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];

/* [boxes, text]: a pair of boxes with a line between their centres, and its words over (a prediction) or under it (the
   truth). taken: the places of words, [left, right, foot], to which these are added; words that would lie on others go
   down, or up. */
function shape({ kind, pair, words, faint }, [width, height], taken) {
  const [x1, y1] = centre(pair[0]), [x2, y2] = centre(pair[pair.length - 1]);
  const text = words.length <= 40 ? words : `${words.slice(0, 39)}\u2026`;
  const unit = Math.max(width, height) / CARD, line = Math.min(TEXT * unit, width / (0.6 * text.length + 1));
  const x = Math.max(Math.min(...pair.map(box => box[0]), width - 0.58 * line * text.length), 0.3 * line);
  const y = kind === "pr"
    ? Math.min(Math.max(Math.min(...pair.map(box => box[1])) - 0.4 * line, line), height - 1.6 * line)
    : Math.max(Math.min(Math.max(...pair.map(box => box[3])) + 1.1 * line, height - 0.4 * line), 2.2 * line);
  const right = x + 0.6 * line * text.length;
  const isFree = foot => foot > line && foot < height && !taken.some(each => each[0] < right && x < each[1] &&
    Math.abs(each[2] - foot) < 1.1 * line);
  const foot = [...Array(9).keys()].flatMap(step => [y + 1.15 * step * line, y - 1.15 * step * line]).find(isFree) ?? y;
  if (text && !faint) taken.push([x, right, foot]);
  const boxes = svg("g", { class: faint ? `${kind} faint` : kind },
    pair.map((box, at) => svg("rect", { class: "so"[at], x: digits(box[0]), y: digits(box[1]),
      width: digits(Math.max(box[2] - box[0], 0)), height: digits(Math.max(box[3] - box[1], 0)) })),
    svg("line", { x1: digits(x1), y1: digits(y1), x2: digits(x2), y2: digits(y2) }),
    [[x1, y1], [x2, y2]].map(([cx, cy]) => svg("circle", { cx: digits(cx), cy: digits(cy), r: digits(3 * unit, 4) })));
  return [boxes, text && !faint && svg("g", { class: kind },
    svg("text", { x: digits(x, 5), y: digits(foot, 5), "font-size": digits(line, 4) }, text))];
}

/* Browsers turn a picture as its camera says (Exif's orientation, 1 to 8); boxes are in stored pixels, so this turns it
   back. */
function stored(turned, width, height) {
  const [w, h] = [digits(width), digits(height)];
  const back = [null, `-1 0 0 1 ${w} 0`, `-1 0 0 -1 ${w} ${h}`, `1 0 0 -1 0 ${h}`, "0 1 1 0 0 0", `0 -1 1 0 0 ${h}`,
    `0 -1 -1 0 ${w} ${h}`, `0 1 -1 0 ${w} 0`][turned - 1];
  return back && `matrix(${back})`;
}

/* An image, or a grey sheet of its size, under shapes: [{kind, pair, words, faint}]. */
function scene(image, shapes, label) {
  const images = column("images"), size = sizeOf(image, shapes.map(each => each.pair));
  const [width, height] = size, unit = Math.max(width, height) / CARD;
  const sheet = words => [
    svg("rect", { width: digits(width), height: digits(height), class: "sheet" }),
    svg("text", { x: digits(width - 6 * unit), y: digits((6 + TEXT) * unit), "font-size": digits(TEXT * unit, 4),
      class: "note" }, words),
  ];
  const parts = [];
  if (images.picture[image]) {
    const across = images.turned[image] > 4 ? [height, width] : size;
    const drawn = svg("image", { href: images.picture[image], width: digits(across[0]), height: digits(across[1]),
      preserveAspectRatio: "none", transform: stored(images.turned[image], width, height),
      onerror: () => drawn.replaceWith(...sheet("the picture cannot be shown")) });
    parts.push(drawn);
    if (!images.width[image] && !loaded.has(image)) measure(image, images.picture[image]);
  } else parts.push(...sheet(facts.note));
  const taken = [], drawn = shapes.map(each => shape(each, size, taken));
  const named = label ? { role: "img", "aria-label": label } : {};
  return svg("svg", { class: "scene", viewBox: `0 0 ${digits(width)} ${digits(height)}`, ...named }, parts,
    drawn.map(([boxes]) => boxes), drawn.map(([, text]) => text));
}

/* Learn the size of a picture whose record does not say it, and draw again. */
function measure(image, address) {
  loaded.set(image, [1000, 1000]);
  const picture = new Image();
  picture.addEventListener("load", () => {
    const size = [picture.naturalWidth, picture.naturalHeight];
    loaded.set(image, column("images").turned[image] > 4 ? size.reverse() : size);
    show();
  });
  loaded.delete(image);
  picture.src = address;
}

const TRUTHS = { own: "truth", nearest: "nearest truth", none: "no ground truth touches it" };

/* IoU in hundredths, rounded down: 0.499 is not 0.50. */
const hundredths = steps => (Math.floor(steps / (facts.steps / 100)) / 100).toFixed(2);

/* What a ground truth is called: its class, behind its subject where that is no person. */
const truthName = row => subjectWord("truth", row) + className(column("truth.interaction")[row]);

/* What a card says of an item (a prediction's row, or ~row of a missed ground truth). */
function told(model, item) {
  if (item < 0) {
    const image = column("truth.image")[~item], number = column("truth.interaction")[~item], name = truthName(~item);
    return { type: MISSED(), image, name, number, truth: ~item, truthName: name, beside: `${TRUTHS.own}: ${name}`,
      facts: ["no score"] };
  }
  const number = ofModel(model, "interaction")[item], truth = ofModel(model, "truth")[item];
  const ofTruth = truth < 0 ? "" : truthName(truth);
  const relation = TRUTHS[facts.relations[ofModel(model, "relation")[item]]];
  const overlaps = ["iou_subject", "iou_object"].map(name => ofModel(model, name)[item]).filter(value => value >= 0);
  const said = [`score ${ofModel(model, "score")[item].toFixed(3)}`];
  if (overlaps.length) said.push(`IoU ${overlaps.map(hundredths).join(" and ")}`);
  return {
    type: ofModel(model, "error")[item], image: ofModel(model, "image")[item], number, truth,
    name: subjectWord(`model${model}`, item) + className(number),
    truthName: ofTruth, beside: ofTruth ? `${relation}: ${ofTruth}` : relation, facts: said,
  };
}

/* Whether boxes of the ground truth (g) or of predictions (p), names (l) or scores (s) are drawn (`hide` in the address). */
const shown = letter => !state.hide.includes("b") && !state.hide.includes(letter);

/* The shapes of an item. large: with score and IoU. */
function shapesOf(model, item, said, large = false) {
  const shapes = [], words = text => shown("l") ? text : "";
  if (said.truth >= 0 && shown("g")) {
    shapes.push({ kind: "gt", pair: pairOf("truth", said.image, said.truth), words: words(said.truthName) });
  }
  if (item >= 0 && shown("p")) {
    const numbers = large && shown("s") ? said.facts.map(each => each.replace("score ", "").replace(" and ", "/")) : [];
    shapes.push({ kind: "pr", pair: pairOf(`model${model}`, said.image, item),
      words: [words(said.name), ...numbers].filter(Boolean).join(", ") });
  }
  return shapes;
}

/* An error: its drawing, and in words its type, class, truth, score, IoU and image. */
function card(model, item) {
  const said = told(model, item), gain = query.numbers().gain(model, said.number, said.type);
  const words = `${typeWords(said.type)}: ${said.name}; ${said.beside}`;
  const known = said.facts.concat(gain ? [`${fixed(gain, 2, true)} AP`] : []);
  return el("article", { class: "card" },
    el("a", { href: addressOf({ ...state, view: "image", image: imageId(said.image), row: String(item), page: "" }),
      "aria-label": `${words}: open its image` }, scene(said.image, shapesOf(model, item, said))),
    el("p", {}, mark(said.type), `${typeWords(said.type)}: `, el("b", {}, said.name)),
    el("p", { class: "truth" }, said.beside),
    el("p", { class: "facts" }, `${known.join(", ")}; ${imageName(said.image)}`));
}

/* Shapes of the same pair as one, with the words of all: "hold, ride bicycle" for two classes of one object. */
function joined(shapes) {
  const byPair = new Map();
  for (const each of shapes) {
    const key = JSON.stringify([each.kind, each.pair]);
    if (byPair.has(key)) byPair.get(key).names.push(each.name);
    else byPair.set(key, { ...each, names: [each.name] });
  }
  return Array.from(byPair.values(), ({ names, before, ...each }) => ({ ...each, words: shown("l") ? before + names
    .map((name, at) => at < names.length - 1 ? name.split(" ").slice(0, -1).join(" ") || name : name).join(", ") : "" }));
}

/* The shapes of ground truth. */
const truthShapes = (image, truths, before = "") => truths.map(row => ({ kind: "gt", pair: pairOf("truth", image, row),
  name: truthName(row), before }));

/* What a model found of the ground truth of an image, in the boxes of the predictions, and what it missed. */
function outcomeShapes(model, image, truths) {
  const by = row => found(model, row) ? ofModel(model, "by")[row] : NONE;
  return [...truthShapes(image, truths.filter(row => by(row) === NONE), "missed: "),
    ...truths.filter(row => by(row) !== NONE).map(row => ({ kind: "ok", pair: pairOf(`model${model}`, image, by(row)),
      name: truthName(row), before: "" }))];
}

/* An image of the filter: what the model found of its ground truth and what it missed, in a picture and in words. */
function imageCard(model, image, truths, errors) {
  const missed = truths.filter(row => !found(model, row)).length;
  const words = truths.length ? `${whole(truths.length - missed)} of ${whole(truths.length)} found` : "no ground truth here";
  return el("article", { class: "card" },
    el("a", { href: addressOf({ ...state, view: "image", image: imageId(image), row: "", by: "", page: "" }),
      "aria-label": `${imageName(image)}: ${words}` }, scene(image, outcomeShapes(model, image, truths).map(each => ({ ...each, words: "" })))),
    el("p", {}, linkTo({ view: "image", image: imageId(image), row: "", by: "" }, el("b", {}, imageName(image)))),
    el("p", { class: "truth" }, `${words}; ${plural(errors, "error")}`));
}
