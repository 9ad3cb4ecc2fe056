"use strict";
for (const browser of document.querySelectorAll(".browser")) {
  const part = (name) => browser.querySelector("." + name);
  const entries = [...browser.querySelectorAll(".entry")];
  const texts = new Map();
  const text = (entry) => {
    if (!texts.has(entry)) texts.set(entry, entry.textContent.toLowerCase());
    return texts.get(entry);
  };
  const filter = () => {
    const words = part("query").value.toLowerCase().split(/\s+/).filter(Boolean);
    const bound = (name, otherwise) => (part(name).value === "" ? otherwise : Number(part(name).value));
    const least = bound("least", -Infinity), most = bound("most", Infinity);
    let shown = 0;
    for (const entry of entries) {
      const value = Number(entry.dataset.value);
      entry.hidden = !(value >= least && value <= most && words.every((word) => text(entry).includes(word)));
      shown += !entry.hidden;
    }
    const what = entries.length === 1 ? browser.dataset.one : browser.dataset.what;
    part("shown").textContent = shown === entries.length ? `${shown} ${what}` : `${shown} of ${entries.length} ${what}`;
    part("none").hidden = shown > 0;
  };
  for (const name of ["query", "least", "most"]) {
    part(name).addEventListener("input", filter);
    part(name).addEventListener("change", filter);
  }
  filter();
}
