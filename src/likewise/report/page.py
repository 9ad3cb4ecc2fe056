"""The page: what it is made of, and how it becomes one HTML file without a network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

from likewise.base.words import counted
from likewise.kernels.cache import cache_directory
from likewise.report.comparison import ShownTexts
from likewise.report.words import signed, visible

TEMPLATE = "report.html"
TERMS = {
    r"Jaccard( similarity)?": "of all elements found in either of two sets, the fraction found in both",
    r"words:\d+[\w,=]*": "a document as the set of its shingles: all runs of {} words in it",
    r"chars:\d+[\w,=]*": "a document as the set of its shingles: all runs of {} characters in it",
    r"stopwords:[\w+]+": "a document as the set of its shingles: a stop word and the two words after it",
    r"shingles?": "a run of words or characters of a document; documents are compared by the shingles they have",
    r"S-curve": "how likely a pair of a given similarity is found: rarely below the threshold, almost surely above it",
    r"exact method": "leaves out only pairs that cannot reach the threshold, and compares all others",
    r"blocking recall": "the fraction of all true matches that are among the pairs compared",
    r"recall": "the fraction of true pairs that were found",
    r"precision": "the fraction of the pairs found that are true",
    r"F1": "one number for precision and recall: their harmonic mean",
    r"95 % interval": "computed so that 95 of 100 such intervals contain the true value",
    r"containment": "the fraction of one document's shingles that the other has, too",
    r"Fellegi[–-]Sunter": "points of a field follow from how often it agrees in matches and how often in other pairs",
    r"odds": "how many times as likely something is as its opposite: odds of 9 to 1 are a probability of 0.9",
    r"minutiae": "the points of a print where a ridge ends or forks",
}
"""Words, as regular expressions, and what they mean; `{}` is the number in the word."""

WORD = re.compile("|".join(f"(?<![\\w-]){term}(?!\\w)" for term in TERMS), re.IGNORECASE)


@dataclass(frozen=True)
class Tile:
    """A number at the top of the page."""

    value: str
    label: str
    note: str = ""

    @classmethod
    def of(cls, number: int, noun: str, note: str = "", plural: str | None = None) -> Tile:
        """Return a number with its noun.

        >>> Tile.of(1, "match", plural="matches").label, Tile.of(2, "pair").label
        ('match', 'pairs')
        """
        value = f"{number:,}"
        return cls(value, counted(number, noun, plural).removeprefix(f"{value} "), note)


@dataclass(frozen=True)
class Alarm:
    """Something to look at; `texts` are the texts in question."""

    title: str
    text: str = ""
    texts: tuple[str, ...] = ()
    urgent: bool = True


@dataclass(frozen=True)
class Picture:
    """A picture and what it shows."""

    title: str
    svg: Markup
    caption: str = ""


@dataclass(frozen=True)
class Bar:
    """A part of a whole in a table, drawn as a bar."""

    part: float
    text: str


@dataclass(frozen=True)
class PageTable:
    """A table: names of the columns, rows, and which columns are numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    numbers: frozenset[int] = frozenset()
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class FieldStep:
    """A step of a waterfall: what a field adds to a score, from where to where; the last is the score itself."""

    name: str
    left: str
    right: str
    points: float
    begin: float
    width: float

    @property
    def told(self) -> str:
        """The points, with a sign."""
        return signed(self.points)


@dataclass(frozen=True)
class Side:
    """One pair: names, similarity, and the two texts or the points of the fields; `zero` is where these begin."""

    left: str
    right: str
    value: str
    comparison: ShownTexts | None = None
    steps: tuple[FieldStep, ...] = ()
    zero: float = 0.0
    missing: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Entry:
    """A pair or a cluster in a browser: a line that opens."""

    value: float
    shown: str
    title: str
    note: str = ""
    sides: tuple[Side, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    rest: str = ""


@dataclass(frozen=True)
class Browser:
    """Entries that can be searched and filtered by their value."""

    name: str
    what: str
    quantity: str
    entries: Sequence[Entry]
    note: str = ""

    @property
    def one(self) -> str:
        """What a single entry is."""
        return "match" if self.what == "matches" else self.what.removesuffix("s")


@dataclass
class Section:
    """A part of the page with its own heading."""

    id: str
    title: str
    intro: str = ""
    pictures: list[Picture] = field(default_factory=list)
    example: Side | None = None
    listings: list[PageTable] = field(default_factory=list)
    browser: Browser | None = None

    @property
    def beside(self) -> bool:
        """True if the browser stands beside the only picture, where there is room."""
        alone = len(self.pictures) == 1 and not self.listings and self.example is None
        return alone and self.browser is not None and bool(self.browser.entries)

    @property
    def filled(self) -> bool:
        """True if there is anything to see."""
        return bool(self.intro or self.pictures or self.listings or (self.browser and self.browser.entries))


@dataclass
class ReportPage:
    """Everything on the page."""

    title: str
    headline: str
    story: list[str]
    tiles: list[Tile]
    alarms: list[Alarm]
    sections: list[Section]
    facts: list[PageTable]
    version: str
    folder: str
    command: str
    problem: str = ""

    @property
    def worries(self) -> str:
        """The heading of the alarms."""
        return "Alarms" if any(alarm.urgent for alarm in self.alarms) else "Notes"


def rendered(report: ReportPage) -> str:
    """Return the page as HTML; every text in it is escaped, and characters that are not seen are shown by signs."""
    from jinja2 import DictLoader, Environment, FileSystemBytecodeCache, StrictUndefined

    folder = cache_directory()  # where the template is kept as Python has compiled it, which takes longer than the rest
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown,
        loader=DictLoader({TEMPLATE: _static(TEMPLATE)}),
        bytecode_cache=FileSystemBytecodeCache(str(folder)) if folder else None,
    )  # fmt: skip
    explained = Explained()
    environment.filters["explained"] = lambda text: explained(visible(text))
    style, script = _static("report.css"), _static("report.js")
    policy = "; ".join([
        "default-src 'none'", f"style-src '{_hash(style)}'", f"script-src '{_hash(script)}'", "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    page = environment.get_template(TEMPLATE)
    return page.render(report=report, style=Markup(style), script=Markup(script), policy=policy)


def _shown(value: Any) -> Any:
    """Return what an expression of the template becomes."""
    return value if isinstance(value, Markup) else visible(value) if isinstance(value, str) else value


def _static(name: str) -> str:
    return files("likewise.report").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Explained:
    """Marks the words of a page that need an explanation, each where it comes first."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, text: str) -> Markup:
        """Return a text as HTML.

        >>> Explained()("<recall>, recall")
        Markup('&lt;<abbr title="the fraction of true pairs that were found" tabindex="0">recall</abbr>&gt;, recall')
        """
        return Markup(WORD.sub(self._marked, str(escape(text))))

    def _marked(self, found: re.Match[str]) -> str:
        word = found[0]
        term = next(term for term in TERMS if re.fullmatch(term, word, re.IGNORECASE))
        if term in self._seen:
            return word
        self._seen.add(term)
        number = re.search(r"\d+", word)
        told = TERMS[term].format(number[0] if number else "")
        return f'<abbr title="{escape(told)}" tabindex="0">{word}</abbr>'
