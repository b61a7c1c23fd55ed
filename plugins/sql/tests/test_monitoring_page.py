"""The page of a job in a real browser: at phone and desktop width, light and dark."""

import json
import math
import re
import statistics
import time
import warnings
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest
from streamcore import ClashWarning, Format, hookimpl, reports
from streamcore.registry import Provider, Registry
from streamcore.reports import Report
from streamcore.testing.services.browser import Browser
from streamcore_sql import Session
from streamcore_sql.jobs import StreamJob
from streamcore_sql.monitoring.about import About, table_about
from streamcore_sql.monitoring.events import Events
from streamcore_sql.monitoring.history import POINTS
from streamcore_sql.monitoring.serving import Server
from streamcore_sql.monitoring.surfaces import Surfaces
from streamcore_sql.monitoring.web import Page

CANARY = "canary-of-the-page"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
LOADS = 9
TWO_QUERIES = """
CREATE TABLE ticks (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
CREATE TABLE hole (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO hole SELECT id FROM ticks;
INSERT INTO hole SELECT id + 1 FROM ticks;
"""

CONTRAST = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((n) => n / 255)
      .map((n) => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const worst = {ratio: 99};
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].filter((each) => each.nodeType === 3)
      .map((each) => each.data.trim()).join("");
    if (!text || !node.checkVisibility() || node.closest("script")) continue;
    const style = getComputedStyle(node);
    const ink = node.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) Object.assign(worst, {ratio, text, tag: node.tagName});
  }
  return worst;
})()
"""


A_DAY = """
(async () => {
  const asked = ask;
  const job = (await ask("api/state")).jobs.find((each) => each.id === selected);
  let at = pointsOf.get(selected).at(-1)[0];
  const point = () => [at += 5, 1e4, 1e4, 1e6, null, 900];
  ask = async () => ({points: Array.from({length: 24}, point)});
  for (let drawn = 0; drawn < 17280 / 24; drawn++) { await update(selected); showJob(job); }
  ask = asked;
  return pointsOf.get(selected).length;
})()
"""


READY = """
new MutationObserver((changes, observer) => {
  const drawn = document.querySelectorAll("#charts path").length === 4;
  if (!drawn || !document.querySelector("#tiles dd")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => {
    const shown = performance.now(), title = document.getElementById("job-title");
    new MutationObserver(() => { window.marks ||= {shown, answered: performance.now()}; })
      .observe(title, {childList: true});
    document.querySelector("#jobs [aria-selected=false] button").click();
  }));
}).observe(document, {childList: true, subtree: true, attributes: true});
"""
"""Run before the page's own script: notes when its figures were painted, and when a click on
another job was answered, both in milliseconds since navigation began."""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def query(batch, *, lag, error=None):
    progress = {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": batch,
        "numInputRows": 9000,
        "durationMs": {"triggerExecution": 2700, "addBatch": 1600, "walCommit": 600},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "stateOperators": [],
        "sources": [
            {
                "numInputRows": 9000,
                "endOffset": {"offsets": {"orders": {"0": 10, "1": 20}, HOSTILE: {"0": 1}}},
                "latestOffset": {
                    "offsets": {"orders": {"0": 10 + lag, "1": 20}, HOSTILE: {"0": 1}}
                },
            }
        ],
        "sink": {"numOutputRows": 8000},
    }
    last = SimpleNamespace(json=json.dumps(progress))
    failure = None if error is None else RuntimeError(error)
    return SimpleNamespace(
        isActive=error is None,
        id=f"query-{batch}",
        lastProgress=last,
        recentProgress=[last],
        exception=lambda: failure,
    )


def fill_history(job):
    start = time.time() - 3600
    for number in range(POINTS):
        wave = 18_000 + 4_000 * math.sin(number / 40)
        lag = 4_200_000 * (1 - number / POINTS / 2)
        point = (start + 5 * number, wave, wave * 0.9, lag, None, 2700 + number % 300)
        job.monitor.history.add(point)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    options = {"topic": HOSTILE, "properties.sasl.password": CANARY}
    tables = (
        table_about("orders", "source", "kafka", options),
        table_about(HOSTILE, "sink", "kafka", {"topic": "copies"}),
    )
    about = About(tables, "/checkpoints/orders", lambda: f"INSERT INTO copies {HOSTILE} {CANARY}")
    jobs = [
        StreamJob("orders.copies", query(81, lag=4_200_000), about),
        StreamJob("orders.totals", query(3, lag=0, error=f"no broker, says {CANARY}"), about),
    ]
    fill_history(jobs[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMCORE_STATE", str(tmp_path_factory.mktemp("state")))
        surfaces = Surfaces("orders", "orders.sql", lambda: jobs, web="0")
        with surfaces.shown(print, print):
            surfaces.look(jobs)
            yield surfaces.urls["web"]
            surfaces.ended(0)


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    return None


def wait_for(browser, condition):
    if found := within(30, lambda: browser.evaluate(condition)):
        return found
    raise AssertionError(f"{condition} never came true: {browser.errors()}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_is_whole_readable_and_fits(browser, url, size, dark, tmp_path):
    browser.look(*SIZES[size], dark=dark)
    browser.open(f"{url}/")
    wait_for(browser, "document.querySelectorAll('#charts path').length === 4")
    (tmp_path / f"{size}-{dark}.png").write_bytes(browser.screenshot())
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drawn = browser.evaluate(
        "[...document.querySelectorAll('#charts path')].map(p => p.getAttribute('d').length)"
    )
    assert min(drawn) > 1000
    behind = browser.evaluate("document.getElementById('verdict').textContent")
    assert behind.startswith("4.2 M behind")
    worst = browser.evaluate(CONTRAST)
    assert worst["ratio"] >= 4.5, worst
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 300) == dark
    asked = browser.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    assert all(each.startswith((url, "data:")) for each in asked)
    assert browser.errors() == []


def has_worked(job):
    return job.metrics().get("numBatches", 0) > 1


@pytest.fixture
def running(spark, tmp_path, monkeypatch):
    """The page of two queries that really run, each with an hour behind it."""
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    session = Session(spark)
    session.execute(TWO_QUERIES)
    try:
        for job in session.jobs:
            fill_history(job)
        surfaces = Surfaces("ticks", "ticks.sql", lambda: session.jobs, web="0")
        with surfaces.shown(print, print):
            surfaces.look(session.jobs)
            done = [partial(has_worked, job) for job in session.jobs]
            assert all(within(240, each) for each in done), session.jobs
            yield surfaces.urls["web"]
            surfaces.ended(0)
    finally:
        session.stop()


def test_it_can_be_used_within_a_second_of_being_opened(browser, running):
    """What others do on the machine makes a load slower, but neither its work nor its waiting.

    A load that waits for something does so each time, so the fastest one shows that; what a load
    has to work is the CPU time of the page and of our process, of which the queries use a part.
    """
    browser.look(*SIZES["desktop"])
    browser.call("Performance.enable")
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=READY)["identifier"]
    loads = []
    for _ in range(LOADS):
        browser.open("about:blank")
        before = cpu_millis(browser)
        browser.open(f"{running}/")
        load = wait_for(browser, "window.marks")
        loads.append({**load, "work": cpu_millis(browser) - before})
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    for name in ("shown", "answered", "work"):
        times = sorted(load[name] for load in loads)
        print(f"{name}: best {times[0]:.0f} ms, median {times[LOADS // 2]:.0f} ms, of {LOADS}")
    assert min(load["answered"] for load in loads) < 1000
    assert statistics.median(load["work"] for load in loads) < 500
    assert browser.errors() == []


def cpu_millis(browser):
    """The CPU time of the page's process and of this one, which serves the page."""
    told = browser.call("Performance.getMetrics")["metrics"]
    (spent,) = (each["value"] for each in told if each["name"] == "ProcessTime")
    return 1000 * (spent + time.process_time())


def test_it_stays_small_through_a_day(browser, url):
    browser.look(*SIZES["desktop"])
    browser.open(f"{url}/")
    wait_for(browser, "document.querySelectorAll('#tiles dd').length > 5")
    before = browser.evaluate("document.getElementsByTagName('*').length")
    assert browser.evaluate(A_DAY) == POINTS
    assert browser.evaluate("document.getElementsByTagName('*').length") < before * 1.2
    browser.call("HeapProfiler.collectGarbage")  # else it depends on when the browser does
    heap = browser.call("Runtime.getHeapUsage")  # exact, where performance.memory is rounded
    held = heap["usedSize"] + heap["embedderHeapUsedSize"] + heap["backingStorageSize"]
    print(f"the page holds {held / 1e6:.1f} MB")
    assert held < 50e6


def test_names_of_others_are_text_and_secrets_are_not_there(browser, url):
    browser.look(*SIZES["desktop"])
    browser.open(f"{url}/")
    wait_for(browser, "document.querySelectorAll('#tables article').length === 2")
    browser.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    wait_for(browser, "document.querySelector('#plan pre').textContent.includes('INSERT INTO')")
    assert browser.evaluate("document.querySelectorAll('main img').length") == 0
    rows = "[...document.querySelectorAll('#topics tbody tr')]"
    topics = f"{rows}.map(each => [...each.children].map(cell => cell.textContent))"
    assert browser.evaluate(topics) == [["orders", "4.2 M behind"], [HOSTILE, "none"]]
    assert "orders" in browser.evaluate("document.title")
    text = browser.evaluate("document.body.textContent")
    assert HOSTILE in text
    assert CANARY not in browser.evaluate("document.documentElement.outerHTML")
    assert "***" in text


def test_another_job_is_a_click_away_and_tells_why_it_failed(browser, url):
    browser.look(*SIZES["phone"])
    browser.open(f"{url}/")
    wait_for(browser, "document.querySelectorAll('#jobs button').length === 2")
    browser.evaluate("document.querySelectorAll('#jobs button')[1].click()")
    told = wait_for(browser, "document.querySelector('#verdict.failed')?.textContent")
    assert told == "no broker, says ***"
    wait_for(browser, "document.getElementById('job-title').textContent === 'orders.totals'")
    listed = browser.evaluate("document.getElementById('troubles').textContent")
    assert "no broker, says ***" in listed


def test_what_was_let_go_is_told_in_the_words_of_the_terminal(browser, url):
    counts = {"skipped": 2, "ignored": 1, "lost": 4, "dead-lettered": 5, "retries": 3}
    told = Report("orders", "source", "query-81", 81, 0, counts)
    assert reports.send(reports.listen().address, told)
    browser.look(*SIZES["phone"])
    browser.open(f"{url}/")
    tiles = "Object.fromEntries([...document.querySelectorAll('#tiles > div')]"
    tiles += ".map(each => [...each.children].map(part => part.textContent)))"
    wait_for(browser, f"{tiles}.rejected === '7'")
    shown = browser.evaluate(tiles)
    assert {name: shown.get(name) for name in ("dead-lettered", "retries")} == {
        "dead-lettered": "5",
        "retries": "3",
    }


def test_dead_letters_and_errors_are_listed_with_their_time_and_place(browser, url):
    notes = [f"orders@0:{number}: not a number: {HOSTILE}" for number in range(60)]
    told = Report("orders", "source", "query-81", 80, 1, {"dead-lettered": 60}, {}, notes)
    assert reports.send(reports.listen().address, told)
    browser.look(*SIZES["desktop"])
    browser.open(f"{url}/")
    listed = "[...document.querySelectorAll('#troubles li')]"
    wait_for(browser, f"{listed}.some(each => each.textContent.includes('orders@0:59'))")
    shown = browser.evaluate(f"{listed}.map(each => [...each.children].map(c => c.textContent))")
    letters = [(about, text) for about, text in shown if text.startswith("orders@0:")]
    assert [text for _, text in letters] == notes[:9:-1]
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \u00b7 orders.copies \u00b7 orders \u00b7 batch 80 "
    assert all(re.fullmatch(pattern, about) for about, _ in letters)
    (error,) = [about for about, text in shown if text == "no broker, says ***"]
    assert re.fullmatch(r"[\dTZ:-]+ \u00b7 orders.totals \u00b7 batch 3 ", error)
    assert browser.evaluate("document.querySelector('#troubles .failed').textContent") == (
        "no broker, says ***"
    )


def provider(distribution, load):
    return Provider(distribution, "1.0", "plugin", load)


def with_json():
    made = ModuleType("made")
    made.register_formats = hookimpl(lambda: [type("Json", (Format,), {"identifier": "json"})])
    return made


def broken():
    raise ImportError(f"no library {HOSTILE}")


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        ([], ["no clashes", "quiet", 1]),
        (
            [provider("acme-json", with_json), provider("odd", broken)],
            [
                f"'plugin' of odd is broken: ImportError: no library {HOSTILE}; "
                "format 'json' of acme-json is shadowed: streamcore-formats 1.0 is active",
                "warning",
                3,
            ],
        ),
    ],
    ids=["none", "some"],
)
def test_plugins_that_clash_are_named_with_the_reason(browser, monkeypatch, others, shown):
    with warnings.catch_warnings(action="ignore", category=ClashWarning):
        registry = Registry([provider("streamcore-formats", with_json), *others])
    monkeypatch.setattr("streamcore.registry.installed", lambda: registry)
    server = Server(("127.0.0.1", 0), Page("job", list, Events(None)).routes, "--web")
    try:
        browser.look(*SIZES["desktop"])
        browser.open(f"{server.url}/")
        wait_for(browser, "document.getElementById('clashes')?.textContent")
        clashes = "[document.getElementById('clashes')].flatMap(it => [it.textContent, it.className"
        rows = "document.querySelectorAll('#plugins tbody tr').length"
        assert browser.evaluate(f"{clashes}, {rows}])") == shown
        assert browser.errors() == []
    finally:
        server.close()


def test_a_long_lag_leaves_the_name_of_a_job_in_one_piece(browser, url):
    browser.look(*SIZES["phone"])
    browser.open(f"{url}/")
    wait_for(browser, "document.querySelectorAll('#jobs button').length === 2")
    lines = browser.evaluate(
        """
        (() => {
          const name = document.querySelector("#jobs button");
          const lag = "51 k (12 min) behind, draining 71.7/s, current at 03:34";
          document.querySelectorAll("#jobs td")[4].textContent = lag;
          return name.offsetHeight / parseFloat(getComputedStyle(name).fontSize);
        })()
        """
    )
    assert lines < 2
