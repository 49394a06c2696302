"use strict";
// The server states what is wrong with a form in the language of the page; a browser would do so in its own.
for (const form of document.querySelectorAll("form")) form.noValidate = true;

// A frame tells the page around it how high it is. Only the origin that the link names gets the message.
const origin = document.body.dataset.frameOrigin;
if (origin && window.parent !== window) {
  let told = 0;
  new ResizeObserver(() => {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    if (height !== told) window.parent.postMessage({ type: "hooksaga.portal.height", height }, origin);
    told = height;
  }).observe(document.body);
}
