// SPDX-License-Identifier: Apache-2.0
// Shows `overview` of the same server again and again, and asks `explain` when told to. Changes nothing there.
// Names and sentences come from the cluster: they become text nodes, never markup.

const PERIOD_MS = 2000;
const PATIENCE_MS = 8000;
const EXPLAIN_PATIENCE_MS = 60000; // a busy cluster's objects may take their time
const STATES = ["wounded", "waiting", "forming", "planned", "gathering", "binding", "running"];

const at = (id) => document.getElementById(id);

/** An element with a class and children; strings become text. */
function make(tag, classes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.append(...children);
  return element;
}

/** Set a text, but only if it is another one: nobody's selection is lost for nothing. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// -- times, as kubectl prints them

const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, YEAR = 365 * DAY;
const STEPS = [
  [2 * MINUTE, 1, "s", 0, ""], [10 * MINUTE, MINUTE, "m", 1, "s"], [3 * HOUR, MINUTE, "m", 0, ""],
  [8 * HOUR, HOUR, "h", MINUTE, "m"], [2 * DAY, HOUR, "h", 0, ""], [8 * DAY, DAY, "d", HOUR, "h"],
  [2 * YEAR, DAY, "d", 0, ""], [8 * YEAR, YEAR, "y", DAY, "d"],
];

function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [below, unit, letter, small, smallLetter] of STEPS) {
    if (whole >= below) continue;
    const rest = small ? Math.floor((whole % unit) / small) : 0;
    return `${Math.floor(whole / unit)}${letter}` + (rest ? `${rest}${smallLetter}` : "");
  }
  return `${Math.floor(whole / YEAR)}y`;
}

const since = (then, now) => (then ? age(now - then) : "");

// -- tables whose rows stay: the focus and the place on the page survive a refresh

/** Make the rows of a table body those of `items`, in this order; `fill(row, item)` writes one. */
function rows(body, items, key, fill) {
  const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const focused = document.activeElement;
  let next = body.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const row = known.get(name) ?? make("tr");
    known.delete(name);
    row.dataset.key = name;
    fill(row, item);
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next);
  }
  for (const row of known.values()) row.remove();
  if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
}

/** The cell of a row under a heading, made on first use. */
function cell(row, label, classes = "", tag = "td") {
  let found = [...row.cells].find((one) => one.dataset.name === label);
  if (!found) {
    found = row.appendChild(make(tag, classes));
    found.dataset.name = label;
    if (tag === "th") found.scope = "row";
    else found.dataset.label = label;
  }
  return found;
}

function number(row, label, amount) {
  const found = cell(row, label);
  say(found, String(amount));
  found.classList.toggle("zero", amount === 0);
}

// -- the picture

function draw(seen) {
  const stands = seen.active ? "active" : "stands by: another replica decides, and knows why gangs wait";
  const closed = seen.closed_nodes ? ` (${seen.closed_nodes} closed)` : "";
  say(at("replica"), `${seen.version} on ${seen.replica}, ${stands} · ${seen.nodes} nodes${closed}, ${seen.pods} pods`);
  const problems = seen.problems.map((problem) => make("li", "", `Not ready: ${problem}`));
  at("problems").replaceChildren(...problems);
  at("problems").hidden = !problems.length;
  drawStates(seen.states);
  rows(at("devices").tBodies[0], seen.devices, (line) => line.name, device);
  rows(at("gangs").tBodies[0], seen.gangs, (line) => [line.api, line.namespace, line.name].join("/"), (row, line) => gang(row, line, seen.at));
  at("gangs").hidden = !seen.gangs.length;
  at("no-gangs").hidden = seen.gangs.length > 0;
  at("left-out").hidden = !seen.left_out;
  say(at("left-out"), `The first ${seen.gangs.length} are shown, ${seen.left_out} more are not.`);
}

function drawStates(counts) {
  if (!at("states").children.length) {
    at("states").append(...STATES.map((state) => make("li", "", make("b"), make("span", state, state))));
  }
  STATES.forEach((state, place) => {
    const box = at("states").children[place];
    say(box.firstChild, String(counts[state] ?? 0));
    box.classList.toggle("none", !counts[state]);
  });
}

function device(row, line) {
  say(cell(row, "Resource", "", "th"), line.name);
  share(cell(row, "", "shares"), line);
  number(row, "Nodes", line.nodes);
  number(row, "Capacity", line.capacity);
  number(row, "Allocatable", line.allocatable);
  number(row, "Used", line.used);
  number(row, "Reserved", line.reserved);
  number(row, "Free", line.free);
  number(row, "Closed", line.closed);
  number(row, "Largest pod", line.largest_pod);
  number(row, "Whole nodes", line.whole_nodes);
  const fits = Object.entries(line.fits).flatMap(([size, members]) => [make("span", "", make("b", "", String(members)), ` × ${size}`), " "]);
  cell(row, "Largest gang", "fits").replaceChildren(...fits);
}

function share(place, line) {
  if (!place.firstChild) {
    const parts = ["used", "reserved", "free", "closed"].map((kind) => make("i", kind));
    place.append(make("div", "bar", ...parts));
    place.firstChild.setAttribute("aria-hidden", "true");
  }
  for (const part of place.firstChild.children) {
    part.style.width = `${line.allocatable ? (100 * line[part.className]) / line.allocatable : 0}%`;
  }
}

function gang(row, line, now) {
  const name = cell(row, "Gang", "", "th");
  if (!name.firstChild) name.append(make("a"));
  say(name.firstChild, `${line.namespace}/${line.name}`);
  name.firstChild.href = "#" + ["explain", line.namespace, line.kind, line.name].map(encodeURIComponent).join("/");
  const state = cell(row, "State", "state");
  if (!state.firstChild) state.append(make("span"));
  state.firstChild.className = line.state;
  say(state.firstChild, line.state);
  for (const field of ["Min", "Ready", "Seats", "Held", "Bound", "Priority"]) number(row, field, line[field.toLowerCase()]);
  say(cell(row, "Age"), since(line.created, now));
  say(cell(row, "Waits"), since(line.since, now));
  say(cell(row, "Reason", "reason"), line.text);
}

// -- asking again

let heard = 0;
let paused = false;

async function refresh() {
  try {
    const answer = await fetch("overview", { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
    if (!answer.ok) throw new Error(`it said ${answer.status}`);
    draw(await answer.json());
    heard = Date.now();
    at("lost").hidden = true;
  } catch (error) {
    const silent = heard ? ` for ${age((Date.now() - heard) / 1000)}; what you see is as old` : "";
    say(at("lost"), `Muster has not answered${silent}. Trying again. (${error.message})`);
    at("lost").hidden = false;
  }
  document.body.classList.toggle("stale", !at("lost").hidden);
}

async function watch() {
  if (!paused && !document.hidden) await refresh();
  setTimeout(watch, PERIOD_MS);
}

function tellFreshness() {
  const told = heard ? `${age((Date.now() - heard) / 1000)} ago` : "";
  say(at("freshness"), paused ? `Paused · ${told}` : told);
}

at("pause").addEventListener("click", () => {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", String(paused));
  say(at("pause"), paused ? "Go on" : "Pause");
  tellFreshness();
  if (!paused) refresh();
});

// -- explain

const form = at("explain");
const MOST_EVIDENCE = { blocks: 5, warns: 3, note: 2, fine: 1 }; // as in a terminal; the rest unfolds
let question = 0;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const parts = ["explain", ...["namespace", "kind", "name"].map((field) => form.elements[field].value.trim())];
  const hash = "#" + parts.map(encodeURIComponent).join("/");
  if (location.hash === hash) explain();
  else location.hash = hash;
});
window.addEventListener("hashchange", explain);

async function explain() {
  const [word, namespace, kind, name, ...rest] = location.hash.slice(1).split("/").map(decoded);
  if (word !== "explain" || !namespace || !kind || !name || rest.length) return;
  const mine = ++question;
  Object.assign(form.elements.namespace, { value: namespace });
  Object.assign(form.elements.kind, { value: kind });
  Object.assign(form.elements.name, { value: name });
  at("answer").replaceChildren(make("p", "quiet", "Asking…"));
  at("answer").focus();
  const answer = await answerTo(namespace, kind, name);
  if (mine !== question) return; // something else was asked meanwhile
  at("answer").replaceChildren(...answer);
  at("answer").scrollIntoView({ block: "nearest" });
}

/** A part of an address that somebody may have typed. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function answerTo(namespace, kind, name) {
  try {
    const path = ["explain", namespace, kind, name].map(encodeURIComponent).join("/");
    const answer = await fetch(path, { signal: AbortSignal.timeout(EXPLAIN_PATIENCE_MS), cache: "no-store" });
    if (answer.ok) return report(await answer.json());
    const why = (await answer.json().catch(() => ({}))).error ?? `it said ${answer.status}`;
    return [make("p", "", `Muster could not explain ${kind} ${namespace}/${name}: ${why}`)];
  } catch (error) {
    return [make("p", "", `Muster did not answer (${error.message}). Try again.`)];
  }
}

function report(told) {
  return [
    make("p", "verdict", told.verdict.sentence),
    ...told.sections.flatMap(section),
    ...told.unseen.map((sentence) => make("p", "quiet", `Not seen: ${sentence}`)),
  ];
}

function section(one) {
  if (!one.findings.length) return [make("p", "quiet", `${one.title}: ${one.nothing}`)];
  return [make("h3", "", one.title), make("ul", "", ...one.findings.map(finding))];
}

function finding(one) {
  const evidence = one.evidence.map((seen) => make("li", "", make("code", "", `${seen.object} ${seen.field}`), `: ${seen.value}`));
  const steps = one.steps.map((step) => {
    const command = step.command ? [" ", make("code", "", step.command)] : [];
    return make("li", "", step.decision ? "The owner decides: " : "Next: ", step.text, ...command);
  });
  const more = evidence.splice(MOST_EVIDENCE[one.weight] ?? 1);
  const below = [...evidence, ...folded(more), ...steps];
  const head = [make("span", `weight ${one.weight}`, one.weight), one.text];
  return make("li", "", ...head, ...(below.length ? [make("ul", "", ...below)] : []));
}

/** What is there to be unfolded. */
function folded(items) {
  if (!items.length) return [];
  return [make("li", "", make("details", "", make("summary", "", `${items.length} more`), make("ul", "", ...items)))];
}

setInterval(tellFreshness, 500);
watch();
explain();
