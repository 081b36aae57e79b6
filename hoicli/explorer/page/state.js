/* The view: it is the address, so that it can be sent on. */

const DEFAULTS = { view: "summary", model: "a", class: "", image: "", row: "", side: "a", type: "", verb: "",
  object: "",
  from: "", to: "", iou: "", iouto: "", slice: "", sort: "gain", by: "", page: "", hide: "" };
const FILTERS = ["class", "type", "verb", "object", "from", "to", "iou", "iouto", "slice"];
let state = { ...DEFAULTS };
let problems = [];

/* Only what differs from the defaults, in their order: one view has one address. */
const addressOf = wanted => `#${Object.entries(DEFAULTS)
  .filter(([name, usual]) => wanted[name] !== usual && wanted[name] !== undefined)
  .map(([name]) => `${name}=${encodeURIComponent(wanted[name])}`).join("&")}`;

/* The text that an address holds; what is no code stays as it was typed. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/* The view of an address, and in `problems` what it names that does not exist. An image is looked up when drawn. */
function stateOf(hash) {
  const found = { ...DEFAULTS };
  problems = [];
  for (const word of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const cut = word.indexOf("="), name = decoded(cut < 0 ? word : word.slice(0, cut));
    if (Object.hasOwn(DEFAULTS, name)) found[name] = decoded(cut < 0 ? "" : word.slice(cut + 1));
    else problems.push(`There is no filter \u201c${visible(name)}\u201d on this page.`);
  }
  const drop = (name, what) => {
    problems.push(`There is no ${what} \u201c${visible(found[name])}\u201d on this page.`);
    found[name] = DEFAULTS[name];
  };
  for (const name of ["from", "to", "iou", "iouto"]) {
    if (found[name] !== "" && (found[name].trim() === "" || !Number.isFinite(Number(found[name])))) drop(name,
      "number");
  }
  const known = { view: Object.keys(VIEWS).filter(view => view !== "compare" || two()), model: two() ? ["a", "b"]
    : ["a"],
    side: Object.keys(SIDES), sort: Object.keys(SORTS) };
  for (const [name, values] of Object.entries(known)) if (!values.includes(found[name])) drop(name, name);
  if (found.by !== "" && !/^-?(name|gt|ap[ab]|diff|gain|errors|a|b)$/.test(found.by)) drop("by", "order");
  if (found.page !== "" && !/^[1-9]\d*$/.test(found.page)) drop("page", "page");
  if (found.class !== "" && !(/^\d+$/.test(found.class) && Number(found.class) < facts.classes.length)) drop("class",
    "class");
  if (found.type !== "" && found.type.split(",").some(name => typeNumber(name) < 0)) drop("type", "type of error");
  if (found.slice !== "" && !query.sliceOf(found).kind) drop("slice", "slice");
  if (found.view === "class" && found.class === "") found.view = "classes";
  return found;
}
const modelNumber = () => state.model === "b" ? 1 : 0;

/* Where this view was scrolled to stands in its entry of the history, so that Back returns to the place. */
history.scrollRestoration = "manual";
let scrolled = 0;
const keepPlace = () => { clearTimeout(scrolled); history.replaceState({ y: scrollY }, ""); };
addEventListener("scroll", () => { clearTimeout(scrolled); scrolled = setTimeout(keepPlace, 200); }, { passive: true });

/* Change the view. `replace`: the way back leads past it, as for each letter that is typed into a filter, and the page
   stays where it is; else the new view begins at its top, or at the element `to`. */
function go(changes, replace = false, to = "") {
  const wanted = { ...state, ...changes }, address = addressOf(wanted), moved = address !== addressOf(state);
  if (!replace) keepPlace();
  if (moved) history[replace ? "replaceState" : "pushState"](replace ? history.state : null, "", address);
  const other = wanted.view !== state.view;
  state = wanted;
  problems = [];
  return show().then(() => replace || arrive(0, to, other));
}

/* Follow a link of the page. */
function follow(address) {
  const before = state.view;
  keepPlace();
  history.pushState(null, "", address);
  state = stateOf(location.hash);
  return show().then(() => arrive(0, "", state.view !== before));
}

/* Scroll to a place of the view that was drawn; a reader who cannot see it is led to its beginning. */
function arrive(y, to, other) {
  const element = to && document.getElementById(to);
  if (other) document.getElementById("main").focus({ preventScroll: true });
  if (element) element.scrollIntoView();
  else scrollTo(0, y);
}

let turnOf = 0;
/* Draw the view of the state, after loading what it needs. */
async function show() {
  const turn = ++turnOf, main = document.getElementById("main"), status = document.getElementById("status");
  const view = VIEWS[state.view], needs = view.needs();
  if (!explorer.has(needs)) {
    main.setAttribute("aria-busy", "true");
    status.textContent = "Loading\u2026";
    try {
      await explorer.load(needs);
    } catch (error) {
      status.textContent = `The page cannot be shown: ${error.message}`;
      return;
    }
    if (turn !== turnOf) return;
  }
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
  const [said, ...content] = view.draw();
  main.replaceChildren(...problems.map(text => el("p", { class: "problem" }, text)),
    ...content.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  for (const box of main.querySelectorAll(".scroll")) {
    box.parentElement.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  }
  showFilters();
  showViews();
  status.textContent = said;
  if (focused) {
    const again = main.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
  document.documentElement.dataset.drawn = String(turn);
}
