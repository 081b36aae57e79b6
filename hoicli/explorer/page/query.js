/* Which predictions and which ground truth a filter leaves, and what is counted of them. */

const query = (() => {
  /* [classes] 1 for those that a filter wants. A name that is no verb's or object's own is looked for in all names. */
  function classesOf(filter) {
    const wanted = new Uint8Array(facts.classes.length);
    const plain = text => text.toLowerCase().replaceAll(" ", "_");  // names are written either way
    const verb = plain(filter.verb), name = plain(filter.object);
    const exactVerb = facts.verbs.some(each => plain(each) === verb);
    const exactName = facts.classes.some(([, each]) => plain(each) === name);
    const fits = (text, part, exact) => part === "" || (exact ? plain(text) === part : plain(text).includes(part));
    const { kind, part: subset } = sliceOf(filter), members = kind === "subset" ? new Set(membersOf(subset)) : null;
    for (let number = 0; number < wanted.length; number++) {
      wanted[number] = (filter.class === "" || Number(filter.class) === number) &&
        fits(verbOf(number), verb, exactVerb) && fits(qualifierOf(number), name, exactName) &&
        (!members || members.has(number)) ? 1 : 0;
    }
    return wanted;
  }

  /* The slice of `slice` in the address (people:2): {kind, slice, part} with the places of both in the facts; a subset
     of classes ("subset"), a part of the images or of the triplets, or "" where there is none of that name. */
  function sliceOf(filter) {
    for (const [slice, { name, parts, members }] of facts.slices.entries()) {
      const part = parts.findIndex(each => `${name}:${each}` === filter.slice);  // a name may have a colon of its own
      if (part >= 0) return { kind: members ? "images" : "triplets", slice, part };
    }
    const subset = facts.subsets.find(([name]) => `subset:${name}` === filter.slice);  // a file may be called so, too
    return subset ? { kind: "subset", part: subset[0] } : { kind: "" };
  }

  /* [the view of the part of the data that a filter asks for, that which the gains are of]. */
  function views() {
    const view = Math.max(facts.views.findIndex(([slice, part]) => `${slice}:${part}` === state.slice), 0);
    return [view, facts.views[view][2] ? view : 0];
  }
  function numbersNeeds() {
    const [view, gains] = views();
    return ["positives", "ap", "counts"].flatMap(name => [`view${view}.${name}`,
      `view${gains}.${name}`]).concat(`view${gains}.gains`);
  }
  /* {ofPart, repaired(class), positives(class), ap(model, class), count(model, class, type), gain(model, class, type), gainOf(model,
     classes, type)}: AP and gain are null for a class without ground truth, a gain also for one that has none left once
     what is missed is taken out; gainOf is the mAP after less the mAP before, as diagnose has it. Where nothing was
     repaired on the part alone, gains are of all data (`ofPart` false), and so of the classes that are `repaired`. */
  function numbers() {
    const [view, gains] = views(), classes = facts.classes.length, types = facts.types.length;
    const [positives, ap, counts] = ["positives", "ap", "counts"].map(name => column(`view${view}.${name}`));
    const [of, before, errors, gained] = ["positives", "ap", "counts",
      "gains"].map(name => column(`view${gains}.${name}`));
    const place = (model, number, type) => (model * classes + number) * types + type;
    const gain = (model, number, type) => {
      const gone = type === MISSED() ? errors[place(model, number, type)] : 0;
      return of[number] > gone ? gained[place(model, number, type)] : null;
    };
    return {
      ofPart: gains === view,
      repaired: number => of[number] > 0,
      positives: number => positives[number],
      ap: (model, number) => positives[number] ? ap[model * classes + number] : null,
      count: (model, number, type) => counts[place(model, number, type)],
      gain,
      gainOf(model, numbers, type) {
        const plain = number => before[model * classes + number];
        const after = mean(numbers, number => gain(model, number, type) === null ? null : plain(number) + gain(model,
          number, type));
        return after === null ? null : after - mean(numbers, number => of[number] ? plain(number) : null);
      },
    };
  }

  /* The mean over some classes of what is not null; null if all is. */
  function mean(classes, value) {
    let sum = 0, count = 0;
    for (const number of classes) {
      const each = value(number);
      if (each !== null) { sum += each; count++; }
    }
    return count ? sum / count : null;
  }

  /* [images] 1 for those that a filter wants, or null for all. */
  function imagesOf(filter) {
    const { kind, slice, part } = sliceOf(filter);
    if (kind !== "images") return null;
    const wanted = new Uint8Array(facts.images);
    for (const image of facts.slices[slice].members[part]) wanted[image] = 1;
    return wanted;
  }

  /* [the place of a slice among those of triplets, its part], or null where the filter has none. */
  function partOf(filter) {
    const { kind, slice, part } = sliceOf(filter);
    return kind === "triplets" ? [facts.slices.slice(0, slice).filter(each => !each.members).length, part] : null;
  }

  /* The columns that a filter reads, by name. */
  function needs(model, filter) {
    const names = ["image", "interaction", "error", "score", "state"].map(name => `model${model}.${name}`);
    if (filter.iou !== "" || filter.iouto !== "" || filter.sort === "iou") {
      names.push(`model${model}.iou_subject`, `model${model}.iou_object`);
    }
    const part = partOf(filter);
    if (part) names.push(`model${model}.part${part[0]}`, `truth.part${part[0]}`);
    return [...names, "truth.image", "truth.interaction", "images"];
  }

  /* The first row whose score is below (or at most, with `open`) a limit; scores descend. */
  function firstBelow(score, limit, open) {
    let low = 0, high = score.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (open ? score[middle] <= limit : score[middle] < limit) high = middle; else low = middle + 1;
    }
    return low;
  }

  const pairs = [null, null];
  /* [predictions] the smaller IoU of the two boxes in steps; of a role without object, the subject's. */
  function pairIou(model) {
    if (!pairs[model]) {
      const subject = ofModel(model, "iou_subject"), object = ofModel(model, "iou_object");
      pairs[model] = subject.map((value, row) => value < 0 ? 0 : object[row] < 0 ? value : Math.min(value,
        object[row]));
    }
    return pairs[model];
  }

  const steps = text => Math.round(Number(text) * facts.steps);
  const limited = filter => filter.from !== "" || filter.to !== "" || filter.iou !== "" || filter.iouto !== "";

  /* Whether a filter leaves a prediction, but for its type. */
  function keeper(model, filter) {
    const image = ofModel(model, "image"), number = ofModel(model, "interaction");
    const classes = classesOf(filter), images = imagesOf(filter), part = partOf(filter);
    const iou = filter.iou === "" && filter.iouto === "" ? null : pairIou(model);
    const low = filter.iou === "" ? 0 : steps(filter.iou), high = filter.iouto === "" ? Infinity : steps(filter.iouto);
    const parts = part ? ofModel(model, `part${part[0]}`) : null, wanted = part ? part[1] : 0;
    return row => classes[number[row]] && !(images && !images[image[row]]) && !(parts && parts[row] !== wanted) &&
      !(iou && (iou[row] < low || iou[row] >= high));
  }
  const inImages = new Map();
  /* The predictions of an image, by rank. */
  function rowsIn(model, image) {
    if (!inImages.has(model)) {
      const of = ofModel(model, "image"), start = new Int32Array(facts.images + 1);
      const rows = bucketed(Int32Array.from(of.keys()), of, facts.images);
      for (const each of of) start[each + 1]++;
      for (let at = 0; at < facts.images; at++) start[at + 1] += start[at];
      inImages.set(model, { start, rows });
    }
    const { start, rows } = inImages.get(model);
    return Array.from(rows.subarray(start[image], start[image + 1]));
  }

  /* The prediction that explains best why a ground truth was not found: of those that it is the nearest truth of, the
     first of its own class, else the first; NONE where there is none. */
  function nearestTo(model, truth) {
    const near = rowsIn(model, column("truth.image")[truth]).filter(row => ofModel(model, "truth")[row] === truth);
    const same = near.find(row => ofModel(model, "interaction")[row] === column("truth.interaction")[truth]);
    return same ?? near[0] ?? NONE;
  }

  /* The rows whose score is in the limits of a filter: [begin, end). */
  const rowsOf = (model, filter) => [
    filter.to === "" ? 0 : firstBelow(ofModel(model, "score"), Number(filter.to), true),
    filter.from === "" ? ofModel(model, "score").length : firstBelow(ofModel(model, "score"), Number(filter.from),
      false),
  ];
  function typesOf(filter) {
    const types = new Uint8Array(facts.types.length).fill(filter.type === "" ? 1 : 0);
    for (const name of filter.type.split(",")) if (typeNumber(name) >= 0) types[typeNumber(name)] = 1;
    if (filter.type === "") types[0] = 0;
    return types;
  }

  /* What a filter leaves of a model: rows (predictions by rank), missed (ground truth), and the counts of both by type,
     class and image. A missed ground truth has neither score nor IoU, so limits of these leave none. */
  function select(model, filter) {
    const image = ofModel(model, "image"), number = ofModel(model, "interaction"), error = ofModel(model, "error");
    const keeps = keeper(model, filter), types = typesOf(filter), [begin, end] = rowsOf(model, filter);
    const every = new Int32Array(facts.types.length);
    const byClass = new Int32Array(facts.classes.length), byImage = new Int32Array(facts.images);
    const rows = new Int32Array(Math.max(0, end - begin));
    let kept = 0;
    for (let row = begin; row < end; row++) {
      if (!keeps(row)) continue;
      every[error[row]]++;
      if (!types[error[row]]) continue;
      byClass[number[row]]++;
      byImage[image[row]]++;
      rows[kept++] = row;
    }
    const missed = [], never = MISSED();
    for (const row of limited(filter) ? [] : truths(filter)) {
      if (ofModel(model, "state")[row] !== never) continue;
      every[never]++;
      if (!types[never]) continue;
      byClass[column("truth.interaction")[row]]++;
      byImage[column("truth.image")[row]]++;
      missed.push(row);
    }
    return { model, rows: rows.subarray(0, kept), missed, every, byClass, byImage, count: kept + missed.length };
  }

  /* The ground truth that a filter leaves, by its class and its part of the data. */
  function truths(filter) {
    const classes = classesOf(filter), images = imagesOf(filter), part = partOf(filter), rows = [];
    const image = column("truth.image"), number = column("truth.interaction");
    const parts = part ? column(`truth.part${part[0]}`) : null;
    for (let row = 0; row < number.length; row++) {
      if (classes[number[row]] && !(images && !images[image[row]]) &&
        !(parts && parts[row] !== part[1])) rows.push(row);
    }
    return rows;
  }

  /* The items of a selection in an order: a prediction is its row, a missed ground truth is ~row. By gain: that of the
     type in the class, then that of the type in mAP, then by score. */
  function ordered(found, sort) {
    const all = new Int32Array(found.count);
    all.set(found.rows);
    found.missed.forEach((row, at) => { all[found.rows.length + at] = ~row; });
    if (sort === "score") return all;
    if (sort === "low") return all.reverse();
    return sort === "iou" ? bucketed(all, iouBuckets(found.model, all), facts.steps + 1)
      : bucketed(all, gainBuckets(found.model, all), facts.classes.length * facts.types.length);
  }

  /* The bucket of each item, the largest IoU first; a missed ground truth has none. */
  function iouBuckets(model, items) {
    const iou = pairIou(model), buckets = new Int32Array(items.length);
    for (let at = 0; at < items.length; at++) buckets[at] = facts.steps - (items[at] < 0 ? 0 : iou[items[at]]);
    return buckets;
  }

  const places = new Map();
  /* [classes x types] the place of each pair among all by its gain, the largest first, of equals by the type's gain in
     mAP; equals in both share one. */
  function gainPlaces(model) {
    const key = `${model} ${views()}`;
    if (places.has(key)) return places.get(key);
    const of = numbers(), types = facts.types.length, gains = new Float64Array(facts.classes.length * types);
    const ofType = facts.types.map((_, type) => of.gainOf(model, membersOf(facts.every), type) || 0);
    for (let pair = 0; pair < gains.length; pair++) gains[pair] = of.gain(model, Math.floor(pair / types),
      pair % types) || 0;
    const place = new Int32Array(gains.length);
    const differ = (one, other) => gains[other] - gains[one] || ofType[other % types] - ofType[one % types];
    const order = Array.from(gains.keys()).sort((one, other) => differ(one, other) || one - other);
    order.forEach((pair, at) => {
      const last = at ? order[at - 1] : pair;
      place[pair] = place[last] + (differ(last, pair) ? 1 : 0);
    });
    places.set(key, place);
    return place;
  }

  /* The bucket of each item by the gain of its class and type. */
  function gainBuckets(model, items) {
    const place = gainPlaces(model), types = facts.types.length, never = MISSED();
    const number = ofModel(model, "interaction"), error = ofModel(model, "error");
    const truthClass = column("truth.interaction"), buckets = new Int32Array(items.length);
    for (let at = 0; at < items.length; at++) {
      const item = items[at];
      buckets[at] = item < 0 ? place[truthClass[~item] * types + never] : place[number[item] * types + error[item]];
    }
    return buckets;
  }

  /* A stable counting sort: half a million items in the time of two passes. */
  function bucketed(items, buckets, count) {
    const start = new Int32Array(count + 1), sorted = new Int32Array(items.length);
    for (let at = 0; at < items.length; at++) start[buckets[at] + 1]++;
    for (let at = 0; at < count; at++) start[at + 1] += start[at];
    for (let at = 0; at < items.length; at++) sorted[start[buckets[at]]++] = items[at];
    return sorted;
  }

  /* The curve of one class on the part of the data that a filter asks for: {recall, precision, score} after each true
     positive. */
  function curve(model, filter) {
    const keeps = keeper(model, { ...filter, iou: "", iouto: "" }), error = ofModel(model, "error"),
      score = ofModel(model, "score");
    const positives = numbers().positives(Number(filter.class)), points = [];
    let counted = 0, right = 0;
    for (let row = 0; row < error.length; row++) {
      if (!keeps(row)) continue;
      counted++;
      if (error[row] === 0) points.push({ recall: ++right / positives, precision: right / counted, score: score[row] });
    }
    return points;
  }

  /* What became of each ground truth under both models: four lists by who found it, with a score of at least `from`. */
  function compared(filter) {
    const least = filter.from === "" ? -Infinity : Number(filter.from), number = column("truth.interaction");
    const models = [0, 1].map(model => ({
      state: ofModel(model, "state"), by: ofModel(model, "by"), score: ofModel(model, "score"),
    }));
    const found = (each, row) => each.state[row] === 0 && each.score[each.by[row]] >= least;
    const sides = { a: [], b: [], both: [], none: [] };
    const byClass = facts.classes.map(() => ({ a: 0, b: 0, both: 0, none: 0 }));
    for (const row of truths(filter)) {
      const a = found(models[0], row), b = found(models[1], row);
      const side = a ? (b ? "both" : "a") : b ? "b" : "none";
      sides[side].push(row);
      byClass[number[row]][side]++;
    }
    return { sides, byClass };
  }

  function comparedNeeds(filter) {
    const part = partOf(filter);
    const names = [0, 1].flatMap(model => ["state", "by", "score"].map(name => `model${model}.${name}`));
    return [...names, "truth.image", "truth.interaction", "images", ...(part ? [`truth.part${part[0]}`] : [])];
  }

  return { classesOf, sliceOf, needs, select, ordered, curve, compared, comparedNeeds, numbers, numbersNeeds, mean,
    keeper, rowsOf, rowsIn, nearestTo, typesOf, truths };
})();
