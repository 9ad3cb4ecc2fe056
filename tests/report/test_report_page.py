"""The page: one file, nothing from outside, hostile text as text, small enough, and colours that can be read."""

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from importlib.resources import files

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import HOSTILE, SCRIPT, documents, large_run, texts

import likewise
from likewise.errors import DamagedError, IncompatibleError, MissingInput, OutputError, ParameterError

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Parsed(HTMLParser):
    """The elements of a page, its text, and whether every tag is closed."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text, self.ids, self.attributes, self.scripts = [], [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.text).append(data)


def check_page(page):
    """What holds for every page."""
    parsed = Parsed(page)
    assert parsed.open == []
    assert parsed.tags.count("script") == 1 == parsed.tags.count("style")
    assert len(parsed.ids) == len(set(parsed.ids))
    outside = [one for one in parsed.attributes if one[1] in ("src", "href", "data", "action", "srcset", "poster")]
    assert [one for one in outside if not str(one[2]).startswith("#")] == []
    assert [one for one in parsed.attributes if one[1] == "style" or one[1].startswith("on")] == []
    assert {one[2] for one in parsed.attributes if one[1] == "href"} <= {f"#{id}" for id in parsed.ids}
    policy = next(value for tag, name, value in parsed.attributes if tag == "meta" and "default-src" in str(value))
    for part in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", page, re.S):
        assert "sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() in policy
    pictures = [name for tag, name, value in parsed.attributes if tag == "svg" and value == "img"]
    labels = [value for tag, name, value in parsed.attributes if tag == "svg" and name == "aria-label"]
    assert len(pictures) == len(labels)
    assert all(labels)
    assert "http://" not in re.sub(r'xmlns="http://www.w3.org/2000/svg"', "", "".join(re.findall(r"<[^>]*>", page)))
    return parsed


def test_hostile_documents_stay_text(tmp_path):
    made = [
        f"{hostile} {text[:200]}{more}"
        for hostile, text in zip(HOSTILE, texts(6)[:6], strict=True)
        for more in ("", " more")
    ]
    names = [f"{SCRIPT}\u202e{i}" for i in range(len(made))]
    table = pa.table({SCRIPT: made, "<b>id": names, "</script>by": [f"{SCRIPT}{i % 2}" for i in range(len(made))]})
    path = tmp_path / "<i>&'\".parquet"
    pq.write_table(table, path)
    run = tmp_path / "<script>run"
    likewise.dedup(path, text=SCRIPT, id="<b>id", threshold=0.5, out=run)
    page = likewise.write_report(run, by="</script>by").read_text(encoding="utf-8")
    parsed = check_page(page)
    assert not {"img", "title script", "iframe"} & set(parsed.tags)
    shown = "".join(parsed.text)
    for piece in (SCRIPT, *HOSTILE[1:3], "שלום עולם", HOSTILE[-1], "\u2401"):
        assert piece in shown
    assert not set("\u202e\u2066\x01\x7f\x85") & set(page)


def test_hostile_names_of_fields(tmp_path):
    """Names of columns are also in pictures: no mathematics, letters that a font lacks, characters that XML lacks."""
    names = ["$x^$", "名前", "<b>&amp;", "a\x01b", "$\\frac{$", "a long name of a column with <script>"]
    people = {name: [f"Ann {i % 7}", f"Bo {i % 7}"] * 20 for i, name in enumerate(names)}
    pq.write_table(pa.table({"id": list(range(40)), **people}), tmp_path / "people.parquet")
    likewise.link(tmp_path / "people.parquet").save(tmp_path / "run")
    parsed = check_page(likewise.write_report(tmp_path / "run").read_text(encoding="utf-8"))
    assert "$x^$" in "".join(parsed.text)


def test_lone_surrogates_in_run_json(tmp_path):
    likewise.dedup(texts(20)).save(tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    stats = json.loads(path.read_text())
    stats["notes"] = ["half a \ud83d character"]
    path.write_text(json.dumps(stats))
    assert "half a \ufffd character" in likewise.write_report(tmp_path / "run").read_text(encoding="utf-8")


def test_a_document_of_megabytes(tmp_path):
    """Far more than is read of a document for its page."""
    text = "".join(f"word{i * 7919 % 100003} {SCRIPT if i % 1000 == 0 else ''}" for i in range(180_000))[:2_000_000]
    pq.write_table(pa.table({"text": [text, text + " more", text]}), tmp_path / "docs.parquet")
    likewise.dedup(tmp_path / "docs.parquet", out=tmp_path / "run")
    page = likewise.write_report(tmp_path / "run").read_text(encoding="utf-8")
    check_page(page)
    assert len(page) < 300_000
    assert "Only the beginning is shown" in page


def test_a_large_run_makes_a_small_page(tmp_path):
    run = large_run(tmp_path / "large")
    begun = time.process_time()
    page = likewise.write_report(run)
    assert time.process_time() - begun < 20
    assert 500_000 < page.stat().st_size < 5_000_000
    text = page.read_text(encoding="utf-8")
    check_page(text)
    assert "One cluster has 5,000 documents" in text
    assert "The measured recall is below the requested recall" in text


def colours(scheme):
    style = files("likewise.report").joinpath("static", "report.css").read_text(encoding="utf-8")
    found = re.findall(r":root \{(.*?)\}", style, re.S)
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", found[("light", "dark").index(scheme)]))


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme):
    """WCAG 2 AA: 4.5 for text, 3 for graphics and the marks of controls."""
    named = colours(scheme)
    text = [("ink", ground) for ground in ("paper", "raised", "changed", "added", "alarm", "hint")]
    text += [(name, ground) for name in ("muted", "accent", "link") for ground in ("paper", "raised")]
    assert {
        pair: contrast(*(named[name] for name in pair)) for pair in text if contrast(*(named[n] for n in pair)) < 4.5
    } == {}
    graphics = [(name, "paper") for name in ("accent", "second", "warn", "focus", "muted")]
    graphics += [("accent", "raised"), ("warn", "raised"), ("muted", "raised"), ("focus", "raised")]
    assert {
        pair: contrast(*(named[n] for n in pair)) for pair in graphics if contrast(*(named[n] for n in pair)) < 3
    } == {}


def test_the_page_of_the_service_has_the_same_colours():
    style, other = (
        files(f"likewise.{room}").joinpath("static", name).read_text(encoding="utf-8")
        for room, name in (("report", "report.css"), ("serve", "page.css"))
    )
    ours, theirs = (one[: one.index("* {")] for one in (style, other))
    assert ours == theirs
    assert set(re.findall(r"var\(--([a-z]+)\)", other)) <= set(re.findall(r"--([a-z]+):", theirs))


def test_the_same_run_gives_the_same_page(tmp_path):
    path, _, _ = documents(tmp_path)
    likewise.dedup(path, out=tmp_path / "run")
    first = likewise.write_report(tmp_path / "run").read_bytes()
    assert likewise.write_report(tmp_path / "run", out=tmp_path / "again.html").read_bytes() == first


def test_errors(tmp_path):
    with pytest.raises(MissingInput, match="no finished run"):
        likewise.write_report(tmp_path)
    with pytest.raises(ParameterError, match="the folder of a finished run"):
        likewise.write_report(7)
    path, _, _ = documents(tmp_path)
    run = tmp_path / "run"
    likewise.pairs(path).save(run)
    with pytest.raises(ParameterError, match="no effect on a run of pairs"):
        likewise.write_report(run, by="source")
    with pytest.raises(OutputError, match="this is a folder"):
        likewise.write_report(run, out=tmp_path)
    with pytest.raises(OutputError, match="there is no folder"):
        likewise.write_report(run, out=tmp_path / "nowhere" / "page.html")
    stats = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**stats, "schema": 99}))
    with pytest.raises(IncompatibleError, match="another version"):
        likewise.write_report(run)
    (run / "run.json").write_text(json.dumps({"likewise": "0", "schema": 1}))
    with pytest.raises(DamagedError, match="'command' is missing"):
        likewise.write_report(run)
    (run / "run.json").write_text("{")
    with pytest.raises(DamagedError, match="cannot be read"):
        likewise.write_report(run)
    (run / "run.json").write_text(json.dumps(stats))
    (run / "pairs.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DamagedError, match=r"pairs\.parquet"):
        likewise.write_report(run)


def test_one_of_anything_is_in_the_singular(tmp_path):
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"text": [*texts(3), texts(3)[0]]}), path)
    for name, made in (("dedup", likewise.dedup(path)), ("pairs", likewise.pairs(path))):
        run = made.save(tmp_path / name)
        page = likewise.write_report(run).read_text()
        assert re.findall(r"\b1 (clusters|pairs|documents|rows|matches)\b", page) == []
        assert "1 pair<" in page
    assert 'label">similar pair<' in page
