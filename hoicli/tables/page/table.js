"use strict";
// Makes a button of each head, which sorts the lines of its table: numbers from the highest, names from A, and the other
// way round when it is pressed again. Published lines and one's own stay apart, each sorted by itself.

/** The number at the beginning of a cell's text; the text itself where it has none; null for a cell without a value. */
function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  if (text === "-" || text === "") return null;
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return row.cells[column].tagName === "TD" && !Number.isNaN(number) ? number : text;
}

/** Order two values: numbers before texts, and cells without a value last, whichever the direction. */
function compare(first, second, direction) {
  if (first === null || second === null) return (first === null) - (second === null);
  if (typeof first !== typeof second) return typeof first === "number" ? -1 : 1;
  return direction * (typeof first === "number" ? first - second : first.localeCompare(second));
}

function sortTable(table, heads, column) {
  const isName = column < Number(table.dataset.names);
  const first = isName ? "ascending" : "descending";
  const other = isName ? "descending" : "ascending";
  const next = heads[column].getAttribute("aria-sort") === first ? other : first;
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", next);
  const direction = next === "ascending" ? 1 : -1;
  for (const body of table.tBodies) {
    for (const row of body.querySelectorAll(".counts")) row.remove(); // they hold for the lines above them
    const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([one], [another]) => compare(one, another, direction));
    body.append(...rows.map(([, row]) => row));
  }
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortTable(table, heads, column));
    head.append(button);
  });
}
