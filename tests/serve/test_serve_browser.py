"""The page in a real browser: Debian's Chromium, without a window."""

import json
import urllib.request

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from browser import chromium
from likewise import Index
from service_process import TOKEN, Served

ROSE = "Rose is a rose is a rose is a rose. Loveliness extreme. Extra gaiters. Sweetest ice-cream."
EDITION = "Rose is a rose is a rose is a rose. Loveliness extreme. Extra gaiters, and then nothing more."
SCRIPT = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"><svg onload="window.hacked = 3">'
RIGHT_TO_LEFT = "\u202eevil\u202c שלום עולם مرحبا بالعالم \u2066isolated\u2069"
CONTROLS = "".join(map(chr, range(32))) + "\x7f\x85\u200f\ufeff\u2028\U0001f600"
HOSTILE = f"{SCRIPT} {RIGHT_TO_LEFT} {CONTROLS} </textarea></title><style>*{{display:none}}</style> hostile words here"
HOSTILE_ID = f"{SCRIPT}\u202e\x01/../..?#%2e"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "index"
    with Index.create(folder, shingle="words:2", threshold=0.2, containment=True) as index:
        index.add(["rose", "edition", HOSTILE_ID], [ROSE, EDITION, HOSTILE])
    running = Served(folder)
    yield running
    running.process.terminate()
    running.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def window():
    with chromium() as driver:
        yield driver


class Page:
    """What a person does with the page."""

    def __init__(self, window, url):
        self.window = window
        window.get(url)
        self.until(lambda: "item" in self["about"].text)

    def __getitem__(self, id):
        return self.window.find_element(By.ID, id)

    def until(self, what):
        return WebDriverWait(self.window, 60, 0.05).until(lambda _: what())

    def run(self, script, *args):
        return self.window.execute_script(script, *args)

    @property
    def answers(self):
        return self.window.find_elements(By.CSS_SELECTOR, ".answer")

    @property
    def names(self):
        return [one.text for one in self.window.find_elements(By.CSS_SELECTOR, ".answer .name")]

    def paste(self, text):
        """Put a text in the field as a paste does: at once, followed by an input event."""
        script = "const t = arguments[0]; t.value = arguments[1]; t.dispatchEvent(new Event('input'))"
        self.run("document.getElementById('status').textContent = ''")
        self.run(script, self["text"], text)
        self.until(lambda: "in the index" in self["status"].text or "similar item" in self["status"].text)

    def open(self, place):
        self.answers[place].click()
        self.until(lambda: self["comparison"].is_displayed())

    def marked(self, side, selector="mark"):
        return [one.text for one in self[side].find_elements(By.CSS_SELECTOR, selector)]

    def give_token(self):
        self.run("document.getElementById('change').open = true")
        self["token"].clear()
        self["token"].send_keys(TOKEN)


@pytest.fixture
def page(window, service):
    made = Page(window, service.url)
    yield made
    assert made.run("return window.hacked") is None
    wrong = [entry for entry in window.get_log("browser") if "Failed to load resource" not in entry["message"]]
    assert wrong == []  # an error of a script, or what the Content-Security-Policy forbids


def test_paste_see_and_compare(page):
    page.paste(ROSE)
    assert page.names == ["rose", "edition"]
    numbers = [float(one.text) for one in page.window.find_elements(By.CSS_SELECTOR, ".answer .number")]
    assert numbers[0] == 1 > numbers[1] > 0.2
    share = "const [f, b] = ['.fill', '.bar'].map(c => arguments[0].querySelector(c).offsetWidth); return f / b"
    for answer, number in zip(page.answers, numbers, strict=True):
        page.until(lambda answer=answer, number=number: abs(page.run(share, answer) - number) < 0.01)
    page.open(1)
    shared = "Rose is a rose is a rose is a rose. Loveliness extreme. Extra gaiters"
    assert page.marked("mine") == [shared] == page.marked("other")
    assert page.marked("mine", ".differs") == ["Sweetest ice-cream"]
    assert page.marked("other", ".differs") == ["and then nothing more"]
    page["close"].click()
    assert not page["comparison"].is_displayed()


def test_everything_by_keyboard(page):
    page["text"].send_keys(ROSE, Keys.CONTROL, Keys.ENTER)
    page.until(lambda: len(page.answers) == 2)
    reached = set()
    for _ in range(12):
        page.window.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.window.switch_to.active_element.get_attribute("id") or "answer")
        if "answer" in reached:
            break
    assert {"find", "choose", "example", "k", "threshold", "measure", "answer"} <= reached
    page.window.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    page.window.switch_to.active_element.send_keys(Keys.ENTER)
    page.until(lambda: page["comparison"].is_displayed())
    assert page["comparison-title"].text == "edition"
    page.window.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not page["comparison"].is_displayed()
    assert "edition" in page.window.switch_to.active_element.text


def test_an_example_shows_what_an_answer_is(page):
    """A click fills in an item of the index without its last words, finds it, and opens it."""
    assert "runs of 2 words" in page["meaning"].text
    page["example"].click()
    page.until(lambda: page["comparison"].is_displayed())
    name, said = page["comparison-title"].text, page["meaning"].text
    assert page.names[0] == name
    assert f"the item {name} of the index without its last" in said
    mine, other = (page.run("return arguments[0].textContent.length", page[side]) for side in ("mine", "other"))
    assert 0 < mine < other
    assert page.marked("mine")
    assert page.marked("other", ".differs")
    page["text"].send_keys(" and more")
    page.until(lambda: "the item" not in page["meaning"].text.partition("Jaccard")[0])


def test_a_quotation_by_containment(page):
    page.run("document.getElementById('measure').value = 'containment'")
    page.paste("Loveliness extreme. Extra gaiters.")
    assert sorted(page.names) == ["edition", "rose"]


def test_add_and_remove(page):
    text = "an item that the page adds and then removes"
    page.paste(text)
    assert page.names == []
    page.run("document.getElementById('change').open = true")
    page["id"].send_keys("from the page")
    page["add"].submit()
    page.until(lambda: "token" in page["change-note"].text)
    page["token"].send_keys("not-the-token-at-all")
    page["add"].submit()
    page.until(lambda: "Wrong token" in page["change-note"].text)
    page.give_token()
    page["add"].submit()
    page.until(lambda: page.names == ["from the page"])
    page["add"].submit()
    page.until(lambda: "already" in page["change-note"].text)
    page.open(0)
    page["remove"].click()
    page.until(lambda: "Removed" in page["status"].text)
    page.paste(text + " ")
    assert page.names == []


def test_a_hostile_document_is_text(page):
    page.paste(HOSTILE)
    assert page.names[0].startswith("<script>window.hacked = 1</script>")
    assert "\u202e" not in page.names[0]
    page.open(0)
    for side in ("mine", "other"):
        shown = page.run("return arguments[0].textContent", page[side])
        assert SCRIPT in shown
        assert "שלום עולם" in shown
        assert "\u2401" in shown  # a control character is shown by its sign
        assert not set("\u202e\u2066\x01\x7f") & set(shown)
        assert page[side].find_elements(By.CSS_SELECTOR, "script, img, svg, style") == []
    assert page["text"].is_displayed()
    page.give_token()
    page["remove"].click()
    page.until(lambda: "Removed" in page["status"].text)


@pytest.mark.parametrize("size", [1_000_000, pytest.param(10_000_000, marks=pytest.mark.soak)])
def test_a_large_file(page, service, tmp_path, size):
    """A dropped file of 1 or 10 MB is looked up, added and compared; the page stays alive."""
    some = [f"{SCRIPT if i % 1000 == 0 else ''} word{i * 7919 % 100003} {RIGHT_TO_LEFT if i % 5000 == 0 else ''}"
            for i in range(size // 12)]  # fmt: skip
    text = " ".join(some)[:size]
    path = tmp_path / "large <b>.txt"
    path.write_text(text)
    page["chooser"].send_keys(str(path))
    page.until(lambda: "No similar items" in page["status"].text)
    assert "large <b>.txt" in page["file-name"].text
    page.give_token()
    page["id"].clear()
    page["id"].send_keys("large")
    page["add"].submit()
    page.until(lambda: page.names == ["large"])
    page.open(0)
    assert "100,000" in page["rule"].text
    assert page.run("return arguments[0].textContent.length", page["other"]) == 100_000
    too_large = tmp_path / "larger.txt"
    too_large.write_text("text " * 4_000_000)
    page["chooser"].send_keys(str(too_large))
    page.until(lambda: "too large" in page["status"].text)
    with urllib.request.urlopen(f"{service.url}/items/large", timeout=60) as answer:
        assert json.load(answer)["text"] == text


def test_dark_light_and_narrow(page):
    page.paste(ROSE)
    page.open(1)
    colours = {}
    for scheme in ("light", "dark"):
        wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.window.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        colours[scheme] = page.run("return getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.run("return document.documentElement.scrollWidth") <= 360
        mine, other = page["mine"].rect, page["other"].rect
        assert other["y"] >= mine["y"] + mine["height"]  # below each other
    finally:
        page.window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_description_of_the_api(page, service):
    page.window.get(f"{service.url}/docs")
    page.until(lambda: len(page.window.find_elements(By.TAG_NAME, "article")) == 7)
    assert "POST /query" in page["routes"].text


def test_scripts_of_another_origin_or_inline_do_not_run(window, service):
    """The Content-Security-Policy holds, should text ever become markup."""
    window.get(f"{service.url}/")
    script = """const s = document.createElement('script');
        try { s.textContent = 'window.hacked = 4'; document.body.append(s) } catch {}
        const d = document.createElement('div');
        try { d.innerHTML = '<img src=x onerror="window.hacked = 5">'; document.body.append(d) } catch {}
        return new Promise(done => setTimeout(() => done(window.hacked === undefined), 200))"""
    assert window.execute_script(script) is True
    window.get_log("browser")


def test_vectors_are_numbers(tmp_path, window):
    """An index of vectors takes numbers and shows distances; what is not a number is named."""
    with Index.create(tmp_path / "vectors", measure="l2") as index:
        index.add(["near", "far"], [[0.0, 0.0, 1.0], [3.0, 4.0, 1.0]])
    running = Served(tmp_path / "vectors")
    try:
        window.get(running.url)
        label, text, status = (window.find_element(By.ID, name) for name in ("text-label", "text", "status"))
        WebDriverWait(window, 30).until(lambda _: "3 numbers" in label.text)
        text.send_keys("[0, 0, x]" + Keys.CONTROL + Keys.ENTER)
        WebDriverWait(window, 30).until(lambda _: "“x” is not a number." in status.text)
        text.clear()
        text.send_keys("[3, 3, 1]" + Keys.CONTROL + Keys.ENTER)
        WebDriverWait(window, 30).until(lambda _: "2 similar items" in status.text)
        answers = [one.text.split() for one in window.find_elements(By.CSS_SELECTOR, "#answers .answer")]
        assert answers == [["far", "1"], ["near", "4.243"]]
        bound = window.find_element(By.ID, "threshold")
        bound.send_keys("2" + Keys.ENTER)
        WebDriverWait(window, 30).until(lambda _: "1 similar item" in status.text and "items" not in status.text)
        window.find_element(By.CSS_SELECTOR, "#answers .answer").click()
        WebDriverWait(window, 30).until(lambda _: window.find_element(By.ID, "other").text == "3 4 1")
        assert window.find_element(By.ID, "mine").text == "3 3 1"
        assert window.get_log("browser") == []
    finally:
        running.process.terminate()
        running.process.communicate(timeout=60)
