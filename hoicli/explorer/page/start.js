/* The page's beginning: its facts, what stands over every view, and the first view. */

function about() {
  const model = (each, at) => el("li", {}, el("b", {}, two() ? `${letter(at)}: ${each.name}` : each.name),
    `: ${whole(each.predictions)} predictions that count${each.uncounted ? `, ${whole(each.uncounted)} that do not` : ""}. `,
    el("span", {}, "Signature: ", el("code", {}, each.signature)));
  return [
    el("p", {}, `${facts.dataset}, protocol ${facts.protocol} (IoU at least ${facts.threshold}): ${whole(facts.images)} images, ` +
      `${whole(facts.triplets)} annotated triplets. Made by hoicli ${facts.version}.`),
    el("details", {}, el("summary", {}, "What these numbers are"), el("ul", {}, facts.models.map(model)),
      el("p", {}, "AP and gains are those of hoicli diagnose --per-class, to the digit. Errors overlap: the gains do not add up to 100 ",
        `${MINUS} mAP.`)),
  ];
}

async function start() {
  await explorer.load(["facts"]);
  facts = explorer.get("facts");
  document.getElementById("title").textContent = facts.title;
  document.getElementById("about").append(...about());
  document.getElementById("skip").addEventListener("click", event => {
    event.preventDefault();  // the address is the view's
    document.getElementById("main").focus();
  });
  makeFilters();
  const follow = () => { state = stateOf(location.hash); return show(); };
  addEventListener("popstate", follow);
  addEventListener("hashchange", () => { if (addressOf(state) !== location.hash) follow(); });
  addEventListener("keydown", onKey);
  await follow();
}

start().catch(error => {
  document.getElementById("main").removeAttribute("aria-busy");
  document.getElementById("status").textContent = `The page cannot be shown: ${error.message}`;
});
