/* The view: it is the address, so that it can be sent on. */

const DEFAULTS = { view: "classes", model: "a", class: "", image: "", row: "", side: "a", type: "", verb: "", object: "",
  from: "", to: "", iou: "", iouto: "", slice: "", sort: "gain", by: "", page: "", hide: "" };
const FILTERS = ["class", "type", "verb", "object", "from", "to", "iou", "iouto", "slice"];
let state = { ...DEFAULTS };

/* Only what differs from the defaults, in their order: one view has one address. */
function addressOf(wanted) {
  const words = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = wanted[name];
    if (value !== usual && value !== undefined) words.append(name, value);
  }
  return `#${words}`;
}

/* The view of an address; what is no view, no number or no name of ours is as if it were not there. */
function stateOf(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, "")), found = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) if (words.has(name)) found[name] = words.get(name).slice(0, 500);
  for (const name of ["from", "to", "iou", "iouto"]) {
    if (found[name].trim() === "" || !Number.isFinite(Number(found[name]))) found[name] = "";
  }
  const known = { view: Object.keys(VIEWS), model: ["a", "b"], side: ["a", "b", "both", "none"], sort: Object.keys(SORTS) };
  for (const [name, values] of Object.entries(known)) if (!values.includes(found[name])) found[name] = DEFAULTS[name];
  if (facts.models.length < 2) {
    found.model = "a";
    if (found.view === "compare") found.view = firstView();
  }
  if (found.class !== "" && !(Number(found.class) in facts.classes)) found.class = "";
  if (found.view === "class" && found.class === "") found.view = firstView();
  if (!(found.view in VIEWS)) found.view = firstView();
  return found;
}
const firstView = () => "classes";
const modelNumber = () => state.model === "b" ? 1 : 0;

/* Change the view; `replace`: the way back leads past it, as for each letter that is typed into a filter. */
function go(changes, replace = false) {
  const address = addressOf({ ...state, ...changes });
  if (address !== addressOf(state)) history[replace ? "replaceState" : "pushState"](null, "", address);
  state = { ...state, ...changes };
  return show();
}

let turnOf = 0;
/* Draw the view of the state, after loading what it needs. */
async function show() {
  const turn = ++turnOf, main = document.getElementById("main"), view = VIEWS[state.view];
  const needs = view.needs();
  if (!explorer.has(needs)) {
    main.setAttribute("aria-busy", "true");
    document.getElementById("status").textContent = "Loading\u2026";
    await explorer.load(needs);
    if (turn !== turnOf) return;
  }
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
  const [status, ...content] = view.draw();
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  for (const box of main.querySelectorAll(".scroll")) {
    box.parentElement.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  }
  showFilters();
  showViews();
  document.getElementById("status").textContent = status;
  if (focused) {
    const again = main.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
  document.documentElement.dataset.drawn = String(turn);
}
