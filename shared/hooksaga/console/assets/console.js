"use strict";
// A part of a page that renews itself waits while nobody looks, or while somebody uses it: what has the focus, or is
// being selected, would be taken away.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  const selection = document.getSelection();
  const used =
    part.contains(document.activeElement) ||
    (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) ||
    part.querySelector("details[open]");
  if (document.hidden || used) event.preventDefault();
});

// The key / leads to the search box, unless somebody is typing.
document.addEventListener("keydown", (event) => {
  const box = document.getElementById("search");
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing || !box) return;
  event.preventDefault();
  box.focus();
  box.select();
});

// One box ticks all rows of a list; without this script it is hidden, and each row is ticked by itself.
for (const label of document.querySelectorAll("[data-tick-all]")) {
  label.hidden = false;
  const all = label.querySelector("input");
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll('input[form="ticked"]')) box.checked = all.checked;
  });
}
