"use strict";
// The page is whole without this script: it adds the theme's switch, and sorting.

const root = document.documentElement;

// Storage may be forbidden, as for files opened from a disk: then the theme is not remembered.
function remembered() {
  try { return localStorage.getItem("discem-theme"); } catch { return null; }
}
function remember(theme) {
  try { localStorage.setItem("discem-theme", theme); } catch { /* nothing is lost but the choice */ }
}
if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered(); // before painting

function themeSwitch() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", dark());
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  button.hidden = false;
  show();
}

function sort(header) {
  const down = header.ariaSort === "ascending";
  const body = header.closest("table").tBodies[0];
  const cell = (row) => row.cells[header.cellIndex];
  const missing = (row) => "missing" in cell(row).dataset;
  const compare = (a, b) =>
    "value" in cell(a).dataset && "value" in cell(b).dataset
      ? cell(a).dataset.value - cell(b).dataset.value
      : cell(a).textContent.localeCompare(cell(b).textContent, "en", { numeric: true });
  const rows = [...body.rows].sort(
    (a, b) => missing(a) - missing(b) || (missing(a) ? 0 : down ? compare(b, a) : compare(a, b)),
  );
  body.append(...rows);
  for (const each of header.parentNode.cells) each.ariaSort = null;
  header.ariaSort = down ? "descending" : "ascending";
}

// A box that scrolls sideways must be within reach of the keyboard, one that does not should not.
function reachScrollers() {
  for (const box of document.querySelectorAll(".scroll"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
}

function markWhereWeAre() {
  const links = new Map();
  for (const link of document.querySelectorAll("nav a")) links.set(link.hash.slice(1), link);
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries)
      links.get(entry.target.id).toggleAttribute("aria-current", entry.isIntersecting);
  }, { rootMargin: "-30% 0px -69% 0px" }); // a line at a third of the window
  for (const id of links.keys()) observer.observe(document.getElementById(id));
}

document.addEventListener("DOMContentLoaded", () => {
  themeSwitch();
  for (const button of document.querySelectorAll("thead button"))
    button.addEventListener("click", () => sort(button.parentNode));
  reachScrollers();
  addEventListener("resize", reachScrollers);
  markWhereWeAre();
});
