"use strict";
const $ = id => document.getElementById(id);
const TYPED = 20000; // characters up to which a text is looked up while it is typed
const SHOWN = 200000; // characters of a file that are put in the text field; a longer one is kept beside it
const PAUSE = 350; // milliseconds without typing before a text is looked up

let info = null; // what the service says of its index
let file = null; // a text that is too long for the field: {name, text}
let asked = null; // the request that is under way
let queried = ""; // the text of the answers
let opened = null; // the answer that is compared
let timer = 0;
let meaning = ""; // what a similarity or a distance is

const exact = (key, value, context) =>
  typeof value === "number" && context && context.source && /^-?\d{16,}$/.test(context.source) ? BigInt(context.source) : value;
const wellFormed = text => text.toWellFormed ? text.toWellFormed() : text;
const currentText = () => file ? file.text : wellFormed($("text").value);
const megabytes = bytes => `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;

function say(message, bad = false, where = "status") {
  $(where).textContent = visible(message);
  $(where).classList.toggle("bad", bad);
}

/** Send a request; return the JSON, or throw an Error with what the service says. */
async function call(method, path, body, signal) {
  const headers = {};
  const token = $("token").value.trim();
  if (token) {
    if (!/^[!-~]+$/.test(token)) throw new Error("The token contains invalid characters.");
    headers.Authorization = `Bearer ${token}`;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    const size = new Blob([body]).size;
    if (info && size > info.max_body) throw new Error(`The text is too large: ${megabytes(size)}; the limit of this service is ${megabytes(info.max_body)}.`);
  }
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not respond.");
  }
  let found;
  try { found = JSON.parse(await answer.text(), exact); } catch { found = {}; }
  if (answer.ok) return found;
  if (answer.status === 401) { $("change").open = true; throw new Error(token ? "Wrong token." : "This needs the service token; enter it below."); }
  throw new Error(found.error || `The service responded with status ${answer.status}.`);
}

async function about() {
  try {
    info = await call("GET", "info");
  } catch (error) {
    say(error.message, true);
    return;
  }
  const kind = info.kind === "sets" ? "sets" : info.shingle || info.kind;
  $("about").textContent = `${info.items.toLocaleString("en")} ${info.items === 1 ? "item" : "items"} · ${kind} · ${info.kind === "vectors" ? info.measure : `similarity from ${info.threshold}`}`;
  $("threshold").placeholder = info.threshold ?? "";
  $("measure-field").hidden = !info.containment;
  if (info.kind === "vectors") {
    const many = info.dimension ? `${info.dimension.toLocaleString("en")} numbers` : "numbers";
    $("text-label").textContent = `Paste a vector: ${many}, separated by blanks or commas`;
    $("bound-label").textContent = "maximum distance";
    $("threshold").removeAttribute("max");
    $("threshold").placeholder = info.within ?? "any";
    $("change-title").textContent = "Add this vector, or remove items";
    $("add-button").textContent = "Add the vector above";
    $("mine-title").textContent = "Your vector";
    $("legend").hidden = true;
  }
  if (info.kind === "sets") $("text-label").textContent = "Enter the elements of a set, separated by blanks";
  meaning = meaningOf(info);
  $("meaning").textContent = meaning;
  $("example").hidden = !info.items || !(info.kind === "vectors" ? info.measure !== "hamming" : info.texts);
  $("id").placeholder = info.ids === "string" ? "" : "the next number";
  if (!info.writable) say("This service was started without a token: nothing can be added or removed.", false, "change-note");
}

/** What the number of an answer means, in a sentence. */
function meaningOf({ kind, measure, shingle }) {
  const open = "Click an answer to see both side by side.";
  if (kind === "vectors") return `An answer has its distance (${{ angle: "the angle in degrees", hamming: "the number of bits that differ" }[measure] || measure}): the smaller, the nearer. ${open}`;
  const [, unit, k] = /^(words|chars):(\d+)/.exec(shingle || "") || [];
  const parts = unit ? (k === "1" ? (unit === "words" ? "words" : "characters") : `runs of ${k} ${unit === "words" ? "words" : "characters"}`) : kind === "sets" ? "elements" : "shingles";
  return `An answer has its Jaccard similarity: the fraction of all ${parts} in your text or the item that are in both. ${open}`;
}

/** Take an item of the index, without its last words, and show what an answer looks like. */
async function example() {
  try {
    const item = await call("GET", "example");
    const words = item.text === null ? [] : item.text.trim().split(/(?<=\s)(?=\S)/u);
    const gone = Math.floor(words.length * Math.min(0.1, (1 - (info.threshold ?? 1)) / 3));
    file = null;
    $("file").hidden = true;
    $("text").hidden = false;
    $("text").value = item.text === null ? item.vector.join(" ") : words.slice(0, words.length - gone).join("").trimEnd();
    await find();
    const without = gone ? ` without its last ${gone === 1 ? "word" : `${gone.toLocaleString("en")} words`}` : "";
    $("meaning").textContent = `This is the item ${visible(String(item.id))} of the index${without}. ${meaning}`;
    const first = document.querySelector(".answer");
    if (first) first.click();
  } catch (error) {
    say(error.message, true);
  }
}

/** The text as an item of this index. */
const itemOf = text => info && info.kind === "sets" ? [...new Set(text.split(/\s+/).filter(Boolean))] : info && info.kind === "vectors" ? numbersOf(text) : text;

function numbersOf(text) {
  const words = text.split(/[\s,;[\]()]+/).filter(Boolean);
  const wrong = words.find(word => !Number.isFinite(Number(word)));
  if (wrong !== undefined) throw new Error(`“${visible(wrong.slice(0, 40))}” is not a number.`);
  return words.map(Number);
}

async function find() {
  clearTimeout(timer);
  if (asked) asked.abort();
  const text = currentText();
  close();
  if (!text.trim()) { $("answers").replaceChildren(); say(""); return; }
  const mine = asked = new AbortController();
  const body = { k: Number($("k").value) || 10 };
  if ($("threshold").value) body[info && info.kind === "vectors" ? "within" : "threshold"] = Number($("threshold").value);
  if (!$("measure-field").hidden) body.measure = $("measure").value;
  say("Searching …");
  const begun = performance.now();
  try {
    body.items = [itemOf(text)];
    const { answers } = await call("POST", "query", JSON.stringify(body), mine.signal);
    queried = text;
    show(answers[0], performance.now() - begun);
  } catch (error) {
    if (error.name === "AbortError") return;
    $("answers").replaceChildren();
    say(error.message, true);
  } finally {
    if (asked === mine) asked = null;
  }
}

function show(answers, milliseconds) {
  $("answers").replaceChildren(...answers.map(answer => {
    const entry = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "answer";
    button.setAttribute("aria-expanded", "false");
    const name = document.createElement("bdi");
    name.className = "name";
    name.textContent = visible(String(answer.id)) || "(empty id)";
    const number = document.createElement("span");
    number.className = "number";
    const far = answer.similarity === undefined || answer.similarity === null; // vectors have a distance instead
    number.textContent = far ? String(Number(answer.distance.toPrecision(4))) : (Math.floor(answer.similarity * 1000) / 1000).toFixed(3); // only equal sets show 1.000
    const bar = document.createElement("span");
    bar.className = "bar";
    const fill = document.createElement("span");
    fill.className = "fill";
    fill.style.display = bar.style.display = "block";
    fill.style.width = `${100 * answer.similarity}%`;
    bar.append(fill);
    bar.hidden = far;
    if (far) bar.style.display = "none";
    button.append(name, number, bar);
    button.addEventListener("click", () => open(answer, button));
    entry.append(button);
    return entry;
  }));
  const count = answers.length === 0 ? "No similar items in the index" : answers.length === 1 ? "1 similar item" : `${answers.length.toLocaleString("en")} similar items`;
  say(`${count} (${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms).`);
}

async function open(answer, button) {
  if (opened && opened.button === button) { close(); return; }
  close();
  opened = { answer, button };
  button.setAttribute("aria-expanded", "true");
  try {
    const item = await call("GET", `items/${encodeURIComponent(String(answer.id))}`);
    if (!opened || opened.button !== button) return;
    $("comparison-title").textContent = visible(String(answer.id)) || "(empty id)";
    if (item.vector) {
      $("mine").textContent = numbersOf(queried).join(" ");
      $("other").textContent = item.vector.join(" ");
    } else if (item.text === null) {
      $("mine").textContent = visible(queried.slice(0, LONGEST));
      $("other").textContent = "This index does not store its documents.";
      $("rule").textContent = "";
    } else {
      const { unit, k, cut, sides } = compareTexts(queried, item.text, info && info.shingle);
      showParts($("mine"), sides[0]);
      showParts($("other"), sides[1]);
      const runs = unit === "chars" ? `${k} characters` : k === 1 ? "single words" : `${k} words`;
      const only = cut ? ` Only the first ${LONGEST.toLocaleString("en")} characters of each text are shown and compared.` : "";
      $("rule").textContent = `Shared runs of ${runs} or more are marked, in any order, ignoring case.${only}`;
    }
    $("remove").hidden = !(info && info.writable);
    $("comparison").hidden = false;
    $("comparison-title").focus({ preventScroll: true });
    $("comparison").scrollIntoView({ block: "nearest" });
  } catch (error) {
    close();
    say(error.message, true);
  }
}

function close() {
  if (opened) opened.button.setAttribute("aria-expanded", "false");
  opened = null;
  $("comparison").hidden = true;
  $("mine").replaceChildren();
  $("other").replaceChildren();
}

async function remove() {
  if (!opened) return;
  const { answer, button } = opened;
  if (!$("token").value) { $("change").open = true; $("token").focus(); say("Enter the service token first.", true, "change-note"); return; }
  try {
    await call("DELETE", `items/${encodeURIComponent(String(answer.id))}`);
    close();
    button.parentElement.remove();
    say(`Removed ${String(answer.id)}.`);
    about();
  } catch (error) {
    say(error.message, true);
  }
}

async function add() {
  const text = currentText(), id = wellFormed($("id").value);
  if (!text.trim()) { say("There is nothing to add.", true, "change-note"); return; }
  const numbers = info && info.ids === "int64";
  if (id && numbers && !/^-?\d{1,19}$/.test(id)) { say("The ids of this index are whole numbers.", true, "change-note"); return; }
  const ids = id ? `"ids":[${numbers ? BigInt(id) : JSON.stringify(id)}],` : "";
  say("Adding …", false, "change-note");
  try {
    await call("POST", "items", `{${ids}"items":[${JSON.stringify(itemOf(text))}],"replace":${$("replace").checked}}`);
    say(id ? `Added ${id}.` : "Added.", false, "change-note");
    await about();
    find();
  } catch (error) {
    say(error.message, true, "change-note");
  }
}

async function take(dropped) {
  if (info && dropped.size > info.max_body) { say(`The file is too large: ${megabytes(dropped.size)}; the limit of this service is ${megabytes(info.max_body)}.`, true); return; }
  const text = await dropped.text();
  if (text.length > SHOWN) {
    file = { name: dropped.name, text };
    $("file-name").textContent = `${visible(dropped.name)}, ${megabytes(dropped.size)}`;
  } else {
    file = null;
    $("text").value = text;
  }
  $("file").hidden = !file;
  $("text").hidden = Boolean(file);
  if (!$("id").value && info && info.ids === "string") $("id").value = dropped.name;
  find();
}

$("ask").addEventListener("submit", event => { event.preventDefault(); find(); });
$("add").addEventListener("submit", event => { event.preventDefault(); add(); });
$("text").addEventListener("input", () => {
  clearTimeout(timer);
  $("meaning").textContent = meaning;
  if ($("text").value.length <= TYPED) timer = setTimeout(find, PAUSE);
});
$("text").addEventListener("keydown", event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); find(); } });
$("example").addEventListener("click", example);
$("choose").addEventListener("click", () => $("chooser").click());
$("chooser").addEventListener("change", () => { if ($("chooser").files[0]) take($("chooser").files[0]); $("chooser").value = ""; });
$("file-remove").addEventListener("click", () => { file = null; $("file").hidden = true; $("text").hidden = false; $("text").value = ""; $("text").focus(); find(); });
$("close").addEventListener("click", () => { const button = opened && opened.button; close(); if (button) button.focus(); });
$("remove").addEventListener("click", remove);
$("token").addEventListener("change", about);
for (const id of ["k", "threshold", "measure"]) $(id).addEventListener("change", () => { if ($("ask").reportValidity()) find(); });
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && opened) $("close").click();
  const here = event.target.closest ? event.target.closest("#answers > li") : null;
  const next = here && (event.key === "ArrowDown" ? here.nextElementSibling : event.key === "ArrowUp" ? here.previousElementSibling : null);
  if (next) { event.preventDefault(); next.firstElementChild.focus(); }
});
for (const kind of ["dragenter", "dragover"]) document.addEventListener(kind, event => { event.preventDefault(); document.body.classList.add("dropping"); });
for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, event => { event.preventDefault(); document.body.classList.remove("dropping"); });
document.addEventListener("drop", event => {
  const dropped = event.dataTransfer.files[0], text = event.dataTransfer.getData("text/plain");
  if (dropped) take(dropped);
  else if (text) { file = null; $("file").hidden = true; $("text").hidden = false; $("text").value = text; find(); }
});
about();
