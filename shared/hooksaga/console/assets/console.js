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
