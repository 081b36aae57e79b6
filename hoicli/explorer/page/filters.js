/* The filters: those that a view offers, those that are set, the views' links, and the keys. */

const SORTS = { gain: "largest gain", score: "highest score", low: "lowest score", iou: "largest IoU" };
/* What a view can follow, and so offers. */
const LISTED_BY = ["type", "verb", "object", "from", "to", "iou", "iouto", "slice"];
const OFFERED = {
  summary: [],
  classes: ["model", "verb", "object", "slice"],
  class: ["model", "slice", "sort"],
  errors: ["model", ...LISTED_BY, "sort"],
  images: ["model", ...LISTED_BY],
  image: ["model", ...LISTED_BY],
  compare: ["verb", "object", "from", "slice"],
};
const followed = name => name === "class" ? ["class", "errors", "images", "image", "compare"].includes(state.view)
  : OFFERED[state.view].includes(name);

/* The filters that this view follows, as the queries take them. */
const filter = () => Object.fromEntries([...FILTERS,
  "sort"].map(name => [name, name === "sort" || followed(name) ? state[name] : ""]));

const option = (value, words) => el("option", { value }, words);
const field = (name, words, input, title) =>
  el("label", { "data-filter": name, title: title || null }, el("span", {}, words), input);

function makeFilters() {
  const form = document.getElementById("filters");
  const names = [...new Set(facts.classes.map(([, name]) => name))].filter(Boolean).sort();
  const list = (id, values) => el("datalist", { id }, values.map(value => option(value, "")));
  const text = (name, id) => el("input", { name, list: id, type: "search", autocomplete: "off", spellcheck: "false" });
  const number = name => el("input", { name, type: "number", step: "any", inputmode: "decimal" });
  const subsets = facts.subsets.map(([name]) => name).filter(name => name !== facts.every);
  const hidden = facts.slices.some(slice => slice.name === "subset");  // a file of that name comes first
  const slices = [...(subsets.length && !hidden ? [{ name: "subset", parts: subsets }] : []), ...facts.slices];
  put(form, {}, [
    two() && field("model", "model", el("select", { name: "model" }, ofModels(at => option("ab"[at], modelName(at))))),
    field("type", "type", el("select", { name: "type" }, option("", "every error"),
      facts.types.map(([name, words]) => option(name, words)))),
    field("verb", "verb", text("verb", "verbs")), list("verbs", [...facts.verbs].sort()),
    field("object", facts.qualifier, text("object", "names")), list("names", names),
    field("from", "score from", number("from")),
    field("to", "below", number("to"), "scores below this"),
    field("iou", "IoU from", number("iou"), "the smaller IoU of the two boxes with the truth beside them"),
    field("iouto", "below", number("iouto"), "the smaller IoU of the two boxes, below this"),
    slices.length > 0 && field("slice", "slice", el("select", { name: "slice" }, option("", "all data"),
      slices.map(slice => el("optgroup", { label: visible(slice.name) },
        slice.parts.map(part => option(`${slice.name}:${part}`, `${visible(slice.name)}: ${visible(part)}`)))))),
    field("sort", "order by", el("select", { name: "sort" },
      Object.entries(SORTS).map(([name, words]) => option(name, words)))),
  ]);
  document.getElementById("fold").open = innerWidth > 640;  // on a telephone they would fill the screen
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", event => {
    const { name, value } = event.target;
    if (Object.hasOwn(DEFAULTS, name)) go({ [name]: value, page: "", row: "" }, event.target.tagName !== "SELECT");
  });
}

/* What a filter that is set is called. */
const WORDS = {
  class: () => className(Number(state.class)),
    type: () => state.type.split(",").map(name => typeWords(typeNumber(name))).join(", "),
  slice: () => visible(state.slice),
};
const LABELS = { from: "score from", to: "score below", iou: "IoU from", iouto: "IoU below" };
const labelOf = name => LABELS[name] || (name === "object" ? facts.qualifier : name);

/* Show what this view offers, as the address has it (what is being typed stays as it is typed), and all that is set,
   each with a way to remove it; what this view cannot follow says so. */
function showFilters(typed = document.activeElement) {
  for (const label of document.querySelectorAll("#filters [data-filter]")) {
    const { filter: name } = label.dataset, input = label.querySelector("input, select");
    label.hidden = !OFFERED[state.view].includes(name);
    if ((input !== typed || state[name] === "") && input.value !== state[name]) input.value = state[name];
    label.classList.toggle("set", FILTERS.includes(name) && state[name] !== "");
  }
  document.getElementById("fold").hidden = OFFERED[state.view].length === 0;
  const set = active().filter(name => name !== "class" || state.view !== "class");
  const chip = name => {
    const idle = !followed(name), words = `${labelOf(name)}: ${(WORDS[name] || (() => visible(state[name])))()}`;
    return el("li", { class: idle ? "idle" : null }, words, idle ? " (not used in this view)" : "",
      el("button", { type: "button", "aria-label": `remove the filter ${words}`,
        onclick: () => go({ [name]: "", page: "", row: "" }) }, "\u00d7"));
  };
  document.getElementById("chips").replaceChildren(...(set.length ? [el("li", { class: "caption" }, "Filters"),
    ...set.map(chip),
    el("li", {}, el("button", { type: "button", id: "clear", onclick: () => go(cleared()) }, "Clear"))] : []));
}
const active = () => FILTERS.filter(name => state[name] !== "");
const cleared = () => ({ ...Object.fromEntries(FILTERS.filter(name => name !== "class" || state.view !== "class")
  .map(name => [name, ""])), page: "", row: "" });

/* Whether anything is left out in this view. */
const filtered = () => active().some(name => followed(name) && (name !== "class" || state.view !== "class"));

const LISTED = [["summary", "Summary"], ["classes", "Classes"], ["errors", "Errors"], ["images", "Images"],
  ["compare", "Compare"]];
const shownViews = () => LISTED.filter(([view]) => view !== "compare" || two());
/* What another view of the list does not take over. */
const FRESH = { page: "", by: "", row: "", image: "", side: DEFAULTS.side };

function showViews() {
  const here = { class: "classes", image: "images" }[state.view] || state.view;
  document.getElementById("views").replaceChildren(...shownViews().map(([view, words]) => el("li", {},
    el("a", { href: addressOf({ ...state, ...FRESH, view }), "aria-current": view === here ? "page" : null }, words))),
    el("li", {}, el("button", { type: "button", id: "keys", onclick: help }, "Keys ", el("kbd", {}, "?"))));
}

const KEYS = [
  ["?", "show or hide this list"],
  ["1, 2, 3, ...", "the views in their order"],
  ["/", "go to the filters"],
  ["\u2192 or j, \u2190 or k", "next and previous image, or page of a list"],
  ["n, p", "next and previous prediction of an image"],
  ["b", "boxes on and off"],
  ["g, h", "the ground truth's boxes, the predictions' boxes on and off"],
  ["l, s", "names on the boxes, scores on the boxes on and off"],
  ["a", "every prediction of an image, or the chosen one"],
  ["m", "the other model"],
  ["u", "up: from an image or a class back to its list"],
  ["x", "clear the filters"],
];
let keysOn = true;

function help() {
  const dialog = document.getElementById("help");
  if (dialog.open) { dialog.close(); return; }
  const box = el("input", { type: "checkbox", onchange: event => { keysOn = event.target.checked; } });
  box.checked = keysOn;
  dialog.replaceChildren(
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", { class: "keys" }, KEYS.filter(([keys]) => two() ||
      keys !== "m").map(([keys, words]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, words)])),
    el("p", {}, el("label", {}, box, " single keys work (? always does)")),
    el("p", {}, "The address of the page holds the view: copy it to send what you see."),
    el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

const toggled = flag => go({ hide: state.hide.includes(flag) ? state.hide.replace(flag, "") : state.hide + flag },
  true);

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const field = event.target.closest("input, select, textarea");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (event.key === "?") { help(); event.preventDefault(); return; }
  if (!keysOn || document.getElementById("help").open) return;
  const scrolls = event.target.closest(".scroll") && event.key.startsWith("Arrow");
  const deed = { ArrowRight: () => step(1), j: () => step(1), ArrowLeft: () => step(-1), k: () => step(-1),
    n: () => stepRow(1), p: () => stepRow(-1), b: () => toggled("b"), g: () => toggled("g"), h: () => toggled("p"),
    l: () => toggled("l"), s: () => toggled("s"), a: () => toggled("a"), u: up, x: () => go(cleared()),
    m: () => two() && go({ model: state.model === "a" ? "b" : "a", row: "" }),
    "/": () => { document.getElementById("fold").open = true; const first =
      document.querySelector("#filters label:not([hidden]) :is(input, select)"); if (first) first.focus(); },
  }[event.key] || viewKey(event.key);
  if (!deed || scrolls) return;
  event.preventDefault();
  deed();
}
const viewKey = key => {
  const view = LISTED[Number(key) - 1];
  return view && shownViews().some(([name]) => name === view[0]) && (() => go({ ...FRESH, view: view[0] }));
};

/* The next image, or page of a list. */
function step(by) {
  if (state.view === "image") return stepImage(by);
  const button = document.querySelector(`.pager [data-key="${by > 0 ? "next" : "previous"}"]`);
  if (button && !button.disabled) button.click();
}
const up = () => ({ image: () => go({ view: "images", image: "", row: "" }),
  class: () => go({ view: "classes", class: "" }) }[state.view] || (() => {}))();
