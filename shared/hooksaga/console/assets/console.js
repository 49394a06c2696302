"use strict";
// Times. A page without this script shows them in UTC. On the console's pages those in tables become relative, and the
// title has the whole time in UTC and in the viewer's zone. On the portal's pages all are in the visitor's zone.
const language = document.documentElement.lang;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const ago = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

function relative(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) || UNITS[3];
  return ago.format(Math.trunc(seconds / size), unit);
}

function showTimes(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const words = relative(moment - Date.now());
    const utc = `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    const local = moment.toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" });
    if (document.body.dataset.times === "local") {
      time.title = utc;
      if (time.textContent !== local) time.textContent = local;
      continue;
    }
    const isShort = time.closest("td, .ago") !== null;
    time.title = [isShort ? null : words, utc, `${local} (${zone})`].filter(Boolean).join("\n");
    if (isShort && time.textContent !== words) time.textContent = words;
  }
}

// A part of a page that renews itself: the whole page is fetched again, and the part is changed to what it is now. What
// somebody has typed, ticked, opened or selected stays, and so does the focus. A hidden page asks for nothing.
const part = document.getElementById("live");

const kept = {
  beforeNodeMorphed: (old) => !(old instanceof Element && old.matches("input:not([type=hidden]), textarea, select")),
  beforeNodeRemoved: (old) => !(old instanceof Element && old.querySelector("input:checked")),
  beforeAttributeUpdated: (name, element) => !(name === "open" && element instanceof HTMLDetailsElement),
};

function isSelecting() {
  const selection = document.getSelection();
  const typing = document.activeElement.matches("input:not([type=checkbox]), textarea, select");
  return (typing && part.contains(document.activeElement)) || (!selection.isCollapsed && part.contains(selection.anchorNode));
}

async function renew() {
  if (document.hidden || isSelecting()) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  part.classList.toggle("stale", !answer || (!answer.ok && !answer.redirected));
  if (!answer) return;
  if (answer.redirected) return void location.reload();
  if (!answer.ok || isSelecting()) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = page.getElementById("live");
  if (!now) return void location.reload();
  Idiomorph.morph(part, now, { callbacks: kept });
  showTimes(part);
  offerScripted();
}

async function keepRenewing() {
  await renew();
  const seconds = Number(part.dataset.every);
  if (seconds) setTimeout(keepRenewing, seconds * 1000);
}

showTimes(document);
setInterval(() => document.hidden || showTimes(document), 10000);
if (part && part.dataset.every) {
  setTimeout(keepRenewing, Number(part.dataset.every) * 1000);
  document.addEventListener("visibilitychange", renew);
}

// Keys: / leads to the search box, j and k to the next and the previous row, x ticks a row, ? opens the list of keys.
// Nothing happens while somebody types.
function moveRow(step) {
  const links = [...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("a[href]")).filter(Boolean);
  const row = document.activeElement.closest("tbody tr");
  const place = links.findIndex((link) => row && row.contains(link));
  const next = links[place < 0 ? (step > 0 ? 0 : -1) : place + step];
  if (next) next.focus();
}

const KEYS = {
  "/": () => {
    const box = document.getElementById("search");
    if (!box) return;
    box.focus();
    box.select();
  },
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => {
    const row = document.activeElement.closest("tbody tr");
    const tick = row && row.querySelector("input[type=checkbox]");
    if (tick) tick.click();
  },
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog");
  const act = KEYS[event.key];
  if (!act || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-keys], button[data-copy]");
  if (!button) return;
  if (button.dataset.keys !== undefined) return KEYS["?"]();
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = button.dataset.copied;
});

// One box ticks all rows of a list; without this script it is hidden, and each row is ticked by itself.
function offerScripted() {
  for (const part of document.querySelectorAll("[data-tick-all], [data-scripted]")) part.hidden = false;
}
offerScripted();
document.addEventListener("change", (event) => {
  if (!event.target.closest("[data-tick-all]")) return;
  for (const box of document.querySelectorAll('input[form="ticked"]')) box.checked = event.target.checked;
});
