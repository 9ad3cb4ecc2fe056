"""The oracle of `dedup(unit=...)`: a dictionary of all units and the documents that have them."""

from likewise import Words


def words(text):
    return Words(1).units(text)


def lines(text):
    """The lines of a text: where each begins, ends, and where the next one begins, or None after a last line that has
    no line break."""
    found, at = [], 0
    while at < len(text):
        stop = text.find("\n", at)
        if stop < 0:
            found.append((at, len(text), None))
            break
        found.append((at, stop - (stop > at and text[stop - 1] == "\r"), stop + 1))
        at = stop + 1
    return found


def paragraphs(text):
    """The same of paragraphs: lines that are not blank, in a row. After the last one there is no next."""
    runs, last_blank = [], True
    for at, end, _ in lines(text):
        blank = not text[at:end].strip()
        if not blank and last_blank:
            runs.append([at, end])
        elif not blank:
            runs[-1][1] = end
        last_blank = blank
    starts = [*(at for at, _ in runs), None]
    return [(*run, starts[number + 1]) for number, run in enumerate(runs)]


def without(text, units, gone):
    """A text without some of its units: each goes with what separates it from the next one; if the last one goes, what
    separates it from the one before goes in its place."""
    left = [number for number in range(len(units)) if number not in gone]
    parts = [text[: units[0][0]]]
    for number in left:
        at, end, after = units[number]
        last = number == left[-1] and len(units) - 1 in gone and units[-1][2] is None
        parts.append(text[at : end if last or after is None else after])
    return "".join(parts) + (text[units[-1][1] :] if units[-1][2] is None else "")


def dedup(corpus, unit, min_words=5, more_than=1, min_left=1, keep="first"):
    """The cuts, as (document, start, end, words, first document, documents), the texts left by document, and what is
    removed: document, words left."""
    split = {"lines": lines, "paragraphs": paragraphs}[unit]
    units = [split(text) for text in corpus]
    holders = {}
    for d, text in enumerate(corpus):
        for at, end, _ in units[d]:
            holders.setdefault(tuple(words(text[at:end])), []).append(d)
    cuts, kept, removed = [], {}, []
    for d, text in enumerate(corpus):
        gone = set()
        for number, (at, end, _) in enumerate(units[d]):
            key = tuple(words(text[at:end]))
            documents = sorted(set(holders[key]))
            if len(key) >= min_words and len(documents) > more_than and (keep == "none" or documents[0] != d):
                gone.add(number)
                cuts.append((d, at, end, len(key), documents[0], len(documents)))
        kept[d] = without(text, units[d], gone) if gone else text
        if gone and len(words(kept[d])) < min_left:
            removed.append((d, len(words(kept.pop(d)))))
    return cuts, kept, removed
