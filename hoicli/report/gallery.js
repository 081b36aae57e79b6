"use strict";
const cards = Array.from(document.querySelectorAll(".card"));
const buttons = Array.from(document.querySelectorAll("[data-filter]"));
const words = document.getElementById("words");
const score = document.getElementById("score");
let error = "";
function update() {
  const wanted = words.value.toLowerCase().replaceAll("_", " ").split(" ").filter(Boolean);
  const least = Number(score.value);
  const all = score.value === score.min;
  let shown = 0;
  for (const card of cards) {
    const own = card.dataset;
    const fits = (!error || own.error === error) && wanted.every(word => own.words.includes(word)) &&
      (all || own.score === "" || Number(own.score) >= least);
    card.hidden = !fits;
    shown += fits;
  }
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.filter === error));
  document.getElementById("least").value = least.toFixed(2);
  document.getElementById("shown").textContent = shown + " of " + cards.length;
}
document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.className === "name") words.value = words.value === button.textContent ? "" : button.textContent;
  else error = error === button.dataset.filter ? "" : button.dataset.filter;
  update();
});
words.addEventListener("input", update);
score.addEventListener("input", update);
update();
