"use strict";
/* What two texts have in common: the characters covered by shingles of both. Linear in their lengths, which are cut. */

const LONGEST = 100000; // characters of a text that are shown and compared
const MOST_PARTS = 4000; // marked parts of a text; the rest is shown unmarked

/** How the index shingles: {unit, k}; runs of three words where that cannot be shown. */
function shinglingOf(name) {
  const found = /^(words|chars):(\d+)/.exec(name || "");
  return found ? { unit: found[1], k: Number(found[2]) } : { unit: "words", k: name && name.startsWith("tokens") ? 1 : 3 };
}

/** The units of a text: where each begins and ends, and what it is compared by. */
function unitsOf(text, unit) {
  const starts = [], ends = [], keys = [];
  const pattern = unit === "chars" ? /[^]/gu : /[\p{L}\p{M}\p{N}]+/gu;
  for (const found of text.matchAll(pattern)) {
    starts.push(found.index);
    ends.push(found.index + found[0].length);
    keys.push(found[0].toLowerCase());
  }
  return { starts, ends, keys };
}

function shinglesOf(keys, k, visit) {
  const size = Math.min(k, keys.length);
  for (let at = 0; size && at + size <= keys.length; at++) visit(keys.slice(at, at + size).join("\u0000"), at, size);
}

/** The parts of `text`, in order: [from, to, whether it is shared]; null for what is between words. */
function partsOf(text, units, k, others) {
  const covered = new Uint8Array(units.keys.length);
  shinglesOf(units.keys, k, (shingle, at, size) => { if (others.has(shingle)) covered.fill(1, at, at + size); });
  const parts = [];
  let from = 0;
  for (let at = 0; at < covered.length && parts.length < MOST_PARTS;) {
    let end = at;
    while (end < covered.length && covered[end] === covered[at]) end++;
    if (units.starts[at] > from) parts.push([from, units.starts[at], null]);
    from = units.ends[end - 1];
    parts.push([units.starts[at], from, covered[at] === 1]);
    at = end;
  }
  if (from < text.length) parts.push([from, text.length, null]);
  return parts;
}

/** Compare two texts; each comes back as its beginning and the parts of that. */
function compareTexts(first, second, shingle) {
  const { unit, k } = shinglingOf(shingle);
  const texts = [first, second].map(text => text.length > LONGEST ? text.slice(0, LONGEST) : text);
  const units = texts.map(text => unitsOf(text, unit));
  const sets = units.map(({ keys }) => { const all = new Set(); shinglesOf(keys, k, one => all.add(one)); return all; });
  return {
    unit, k,
    cut: first.length > LONGEST || second.length > LONGEST,
    sides: [0, 1].map(side => ({ text: texts[side], parts: partsOf(texts[side], units[side], k, sets[1 - side]) })),
  };
}

/** A text as it is shown: control characters and those that turn the direction of writing become visible signs. */
function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, one => one === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + one.charCodeAt(0)))
    .replace(/[\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "\u2426");
}

/** Put a text and its parts in an element. Text is only ever set as text. */
function showParts(element, { text, parts }) {
  const all = document.createDocumentFragment();
  for (const [from, to, shared] of parts) {
    const piece = document.createElement(shared ? "mark" : "span");
    if (shared === false) piece.className = "differs";
    piece.textContent = visible(text.slice(from, to));
    all.append(piece);
  }
  element.replaceChildren(all);
}
