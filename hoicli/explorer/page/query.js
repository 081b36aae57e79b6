/* Which predictions and which ground truth a filter leaves, and what is counted of them. */

const query = (() => {
  /* [classes] 1 for those that a filter wants. A name that is no verb's or object's own is looked for in all names. */
  function classesOf(filter) {
    const wanted = new Uint8Array(facts.classes.length);
    const verb = filter.verb.toLowerCase(), name = filter.object.toLowerCase();
    const exactVerb = facts.verbs.some(each => each.toLowerCase() === verb);
    const exactName = facts.classes.some(([, each]) => each.toLowerCase() === name);
    const fits = (text, part, exact) => part === "" ||
      (exact ? text.toLowerCase() === part : text.toLowerCase().includes(part));
    const [kind, slice, part] = sliceOf(filter);
    const group = kind === "group" ? new Set(facts.groups[part]) : null;
    for (let number = 0; number < wanted.length; number++) {
      wanted[number] = (filter.class === "" || Number(filter.class) === number) &&
        fits(verbOf(number), verb, exactVerb) && fits(qualifierOf(number), name, exactName) &&
        (!group || group.has(number)) ? 1 : 0;
    }
    return wanted;
  }

  /* ["group" | "images" | "triplets" | "", which slice, which part] of `slice` in the address: people:2. */
  function sliceOf(filter) {
    const [name, ...rest] = filter.slice.split(":");
    const part = rest.pop(), full = [name, ...rest].join(":");
    if (full === "frequency" && facts.groups[part]) return ["group", full, part];
    for (const [kind, slices] of [["images", facts.image_slices], ["triplets", facts.triplet_slices]]) {
      const at = slices.findIndex(slice => slice.name === full);
      const place = at < 0 ? -1 : slices[at].parts.indexOf(part);
      if (place >= 0) return [kind, at, place];
    }
    return ["", 0, 0];
  }

  /* [images] 1 for those that a filter wants, or null for all. */
  function imagesOf(filter) {
    const [kind, slice, part] = sliceOf(filter);
    if (kind !== "images") return null;
    const wanted = new Uint8Array(facts.images);
    for (const image of facts.image_slices[slice].members[part]) wanted[image] = 1;
    return wanted;
  }

  function partOf(filter) {
    const [kind, slice, part] = sliceOf(filter);
    return kind === "triplets" ? [slice, part] : null;
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
      pairs[model] = subject.map((value, row) => value < 0 ? 0 : object[row] < 0 ? value : Math.min(value, object[row]));
    }
    return pairs[model];
  }

  const steps = text => Math.round(Number(text) * facts.steps);
  const limited = filter => filter.from !== "" || filter.to !== "" || filter.iou !== "" || filter.iouto !== "";

  /* What a filter leaves of a model: rows (predictions by rank), missed (ground truth), and the counts of both by type,
     class and image. A missed ground truth has neither score nor IoU, so limits of these leave none. */
  function select(model, filter) {
    const image = ofModel(model, "image"), number = ofModel(model, "interaction");
    const error = ofModel(model, "error"), score = ofModel(model, "score");
    const classes = classesOf(filter), images = imagesOf(filter), part = partOf(filter);
    const types = new Uint8Array(facts.types.length).fill(filter.type === "" ? 1 : 0);
    for (const name of filter.type.split(",")) if (typeNumber(name) >= 0) types[typeNumber(name)] = 1;
    if (filter.type === "" && !filter.right) types[0] = 0;
    const every = new Int32Array(facts.types.length);
    const byClass = new Int32Array(classes.length), byImage = new Int32Array(facts.images);
    const begin = filter.to === "" ? 0 : firstBelow(score, Number(filter.to), true);
    const end = filter.from === "" ? score.length : firstBelow(score, Number(filter.from), false);
    const iou = filter.iou === "" && filter.iouto === "" ? null : pairIou(model);
    const low = filter.iou === "" ? 0 : steps(filter.iou), high = filter.iouto === "" ? Infinity : steps(filter.iouto);
    const parts = part ? ofModel(model, `part${part[0]}`) : null, wantedPart = part ? part[1] : 0;
    const rows = new Int32Array(Math.max(0, end - begin));
    let kept = 0;
    for (let row = begin; row < end; row++) {
      const of = number[row], where = image[row];
      if (!classes[of] || (images && !images[where]) || (parts && parts[row] !== wantedPart)) continue;
      if (iou && (iou[row] < low || iou[row] >= high)) continue;
      const type = error[row];
      every[type]++;
      if (!types[type]) continue;
      byClass[of]++;
      byImage[where]++;
      rows[kept++] = row;
    }
    const state = ofModel(model, "state"), truthImage = column("truth.image"), truthClass = column("truth.interaction");
    const truthPart = part ? column(`truth.part${part[0]}`) : null, never = MISSED();
    const missed = [];
    for (let row = 0; row < state.length && !limited(filter); row++) {
      if (state[row] !== never || !classes[truthClass[row]] || (images && !images[truthImage[row]])) continue;
      if (truthPart && truthPart[row] !== wantedPart) continue;
      every[never]++;
      if (!types[never]) continue;
      byClass[truthClass[row]]++;
      byImage[truthImage[row]]++;
      missed.push(row);
    }
    return { model, rows: rows.subarray(0, kept), missed, every, byClass, byImage, count: kept + missed.length };
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

  const places = [null, null];
  /* [classes x types] the place of each pair among all by its gain, the largest first, of equals by the type's gain in
     mAP; equals in both share one. */
  function gainPlaces(model) {
    if (places[model]) return places[model];
    const types = facts.types.length, gains = new Float64Array(facts.classes.length * types);
    const ofType = facts.types.map(([name]) => (facts.models[model].gains[name] || {})[facts.every] || 0);
    for (let pair = 0; pair < gains.length; pair++) gains[pair] = gainOf(model, Math.floor(pair / types), pair % types) || 0;
    const place = new Int32Array(gains.length);
    const differ = (one, other) => gains[other] - gains[one] || ofType[other % types] - ofType[one % types];
    const order = Array.from(gains.keys()).sort((one, other) => differ(one, other) || one - other);
    order.forEach((pair, at) => {
      const last = at ? order[at - 1] : pair;
      place[pair] = place[last] + (differ(last, pair) ? 1 : 0);
    });
    places[model] = place;
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

  /* The curve of one class: [recall, precision] after each true positive, and [recall, score] for the reader's hand. */
  function curve(model, wanted) {
    const number = ofModel(model, "interaction"), error = ofModel(model, "error"), score = ofModel(model, "score");
    const positives = facts.positives[wanted], points = [];
    let counted = 0, right = 0;
    for (let row = 0; row < number.length; row++) {
      if (number[row] !== wanted) continue;
      counted++;
      if (error[row] === 0) {
        right++;
        points.push({ recall: right / positives, precision: right / counted, score: score[row] });
      }
    }
    return points;
  }

  /* What became of each ground truth under both models: four lists by who found it, with a score of at least `from`.
     `type` is of the model that is wrong (of either, where both are). */
  function compared(filter) {
    const classes = classesOf(filter), images = imagesOf(filter), part = partOf(filter);
    const image = column("truth.image"), number = column("truth.interaction");
    const parts = part ? column(`truth.part${part[0]}`) : null;
    const least = filter.from === "" ? -Infinity : Number(filter.from);
    const types = filter.type === "" ? null : new Set(filter.type.split(",").map(typeNumber));
    const models = [0, 1].map(model => ({
      state: ofModel(model, "state"), by: ofModel(model, "by"), score: ofModel(model, "score"),
    }));
    const found = (each, row) => each.state[row] === 0 && each.score[each.by[row]] >= least;
    const sides = { a: [], b: [], both: [], none: [] };
    const byClass = facts.classes.map(() => ({ a: 0, b: 0, both: 0, none: 0 }));
    for (let row = 0; row < number.length; row++) {
      if (!classes[number[row]] || (images && !images[image[row]]) || (parts && parts[row] !== part[1])) continue;
      const a = found(models[0], row), b = found(models[1], row);
      const side = a ? (b ? "both" : "a") : b ? "b" : "none";
      if (types) {
        const wrong = [a ? NONE : models[0].state[row], b ? NONE : models[1].state[row]];
        if (!wrong.some(type => types.has(type))) continue;
      }
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

  return { classesOf, needs, select, ordered, curve, compared, comparedNeeds };
})();
