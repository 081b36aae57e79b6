/* The page's beginning: its facts, what stands over every view, and the first view. */

function about() {
  const left = facts.annotated > facts.triplets
    ? `, of which ${whole(facts.triplets)} count (the others are no_interaction, or of no class that counts)` : "";
  return el("p", {}, `${visible(facts.dataset)}: ${whole(facts.images)} images with ${whole(facts.annotated)} annotated triplets${left}. ` +
    `Errors, gains and the AP of classes: protocol ${visible(facts.protocol)}, ${facts.rule}. Made by hoicli ${facts.version}.`);
}

async function start() {
  await explorer.load(["facts"]);
  facts = explorer.get("facts");
  document.getElementById("title").textContent = visible(facts.title);
  document.getElementById("about").append(about());
  document.getElementById("skip").addEventListener("click", event => {
    event.preventDefault();  // the address is the view's
    document.getElementById("main").focus();
  });
  makeFilters();
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#']:not(.skip)");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    follow(link.getAttribute("href"));
  });
  /* Back, Forward, or another address that was typed: what is on the screen gives way, and so does a field's text. */
  addEventListener("popstate", async event => {
    state = stateOf(location.hash);
    await show();
    showFilters(null);
    scrollTo(0, event.state ? event.state.y : 0);
  });
  addEventListener("keydown", onKey);
  state = stateOf(location.hash);
  await show();
  if (history.state) scrollTo(0, history.state.y);
}

start().catch(error => {
  document.getElementById("main").removeAttribute("aria-busy");
  document.getElementById("status").textContent = `The page cannot be shown: ${error.message}`;
});
