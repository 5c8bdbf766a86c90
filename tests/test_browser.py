"""The page of a report in a browser: from a file, without a network, wide and narrow, in light and in dark."""

import json
import shutil
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import unmix
from unmix.reporting.report import Report
from unmix.reporting.section import Chart, Grid, Section

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the page is not opened")
axe = pytest.importorskip("selenium_axe_python", reason="selenium-axe-python is not installed: the page is not opened")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
DRIVER = shutil.which("chromedriver")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
NASTY = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: the page is not opened"),
    pytest.mark.skipif(DRIVER is None, reason="no chromedriver is installed: the page is not opened"),
]
# the names end in the same words: one process opens the browser, and makes the pages, for all (conftest.py)


def many(rng):
    """More rows, groups and components than there is room for."""
    k, names = 19, [f"column {j}" + " that goes on" * (j % 3) for j in range(12)]
    called = [f"group {g + 1}" for g in range(k)]
    points = [[*rng.normal(size=2).round(3).tolist(), int(g)] for g in rng.integers(1, k + 1, size=3000)]
    cells = [{"group": g, "column": c, "value": float(rng.normal()), "text": c} for g in called for c in names]
    bars = [{"name": str(i + 1), "value": 0.96 / (i + 1), "on": i < 7} for i in range(20)]
    shown = [
        Chart("dots", "Rows.", {"points": points, "x": "component 1", "y": "component 2"}),
        Chart("heat", "Groups.", {"cells": cells, "columns": names, "groups": called}),
        Chart("columns", "Components.", {"bars": bars, "x": "component", "y": "share of variance"}),
        Grid(
            "A long table.",
            ["row", "holds"],
            [[str(i), "a sentence that needs more lines than one"] for i in range(80)],
            2,
        ),
    ]
    return Section("groups", "Many", "Many", "There are many.", [], shown, "import unmix", {})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Pages with all pictures: of groups, odd rows and holes under hostile names; of counts; of many groups."""
    rng = np.random.default_rng(0)
    group = np.arange(150) % 3
    x = rng.normal(size=(150, 6)) + np.eye(3, 6)[group] * 9
    x[[7, 50], 4:] = [[30.0, -28.0], [-31.0, 30.0]]
    names = [NASTY, "a name so long that no label of any picture has room for it", "b", "c", "'\"&lt;", "d"]
    frame = pd.DataFrame(x, columns=names).assign(who=[f"{NASTY}{i}" for i in range(150)])
    frame.loc[rng.choice(150, 20, replace=False), "b"] = np.nan
    counts = rng.poisson(8 * (rng.random((2, 60)) < 0.2)[rng.integers(2, size=200)])
    made = {
        "groups": unmix.report(frame, title=NASTY, id="who"),
        "counts": unmix.report(pd.DataFrame(counts, columns=[f"word {j}" for j in range(60)]), title="counts"),
    }
    made["many"] = Report("many", [many(rng)], [])
    made["groups"].notes.append(NASTY)
    folder = tmp_path_factory.mktemp("pages")
    return {name: report.save(folder / f"{name}.html") for name, report in made.items()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium without a window and without a network."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(DRIVER)) as driver:
        driver.set_network_conditions(offline=True, latency=0, throughput=0)
        yield driver


def see(browser, size="desktop", scheme="light", media=""):
    """What the page is shown on."""
    width, height = SIZES[size]
    shown = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shown)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def visit(browser, path, *how):
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # of the page before
    see(browser, *how)
    browser.get(path.as_uri())


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser):
    told = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [t["params"]["request"]["url"] for t in told if t["method"] == "Network.requestWillBeSent"]


def settle(browser):
    """Wait for what the page does when it is next drawn."""
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


# Text that cannot be read: outside of the window, of the box that scrolls it or of its own; labels over labels.
CUT = """
const bad = [], edge = 1, tell = (what, e) => bad.push(what + ": " + e.textContent.trim().slice(0, 60));
const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length;
if (document.documentElement.scrollWidth > innerWidth) bad.push("the page is wider than the window");
for (const e of document.querySelectorAll("body *")) {
  if (e.closest("svg, script, style") || !seen(e)) continue;
  const how = getComputedStyle(e), scrolls = /auto|scroll/.test(how.overflowX);
  if (how.display !== "inline" && !scrolls && e.scrollWidth > e.clientWidth + edge) tell("wider than its box", e);
  if (/hidden|clip/.test(how.overflowY) && e.scrollHeight > e.clientHeight + edge) tell("higher than its box", e);
}
for (const svg of document.querySelectorAll("svg")) {
  const box = (svg.closest(".chart") ?? svg).getBoundingClientRect();
  const labels = [...svg.querySelectorAll("text")].filter((t) => seen(t) && t.textContent.trim());
  const rects = labels.map((t) => t.getBoundingClientRect());
  rects.forEach((a, i) => {
    const beside = a.left < box.left - edge || a.right > box.right + edge;
    if (beside || a.top < box.top - edge || a.bottom > box.bottom + edge) tell("outside of its picture", labels[i]);
    rects.slice(0, i).forEach((b, j) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) tell("over " + labels[j].textContent.slice(0, 30), labels[i]);
    });
  });
}
return bad;
"""

# Labels of pictures, on what lies behind them: axe does not look into pictures.
PALE = """
const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (rgb) => {
  const [r, g, b] = rgb.match(/[\\d.]+/g).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = getComputedStyle(document.body).backgroundColor, bad = [];
for (const t of document.querySelectorAll("svg text")) {
  t.scrollIntoView({ block: "center", behavior: "instant" });
  const r = t.getBoundingClientRect(), ink = getComputedStyle(t).fill, halo = getComputedStyle(t).stroke;
  if (!r.width || !t.textContent.trim()) continue;
  const under = document.elementsFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
  const behind = under.find((e) => e.matches("rect, path")), fill = behind ? getComputedStyle(behind).fill : "none";
  const [a, b] = [light(ink), light([halo, fill, paper].find((color) => color !== "none"))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) bad.push(`${t.textContent}: ${contrast.toFixed(2)}, ${ink} on ${fill}`);
}
return bad;
"""

AXE = """
const done = arguments[0];
const tell = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 120)} ${node.failureSummary}`);
axe.run({ resultTypes: ["violations"] }).then((found) => done(found.violations.flatMap(tell)), done);
"""


@pytest.mark.parametrize("page", ["groups", "counts", "many"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_whole_readable_and_alone_in_a_browser(browser, saved, size, scheme, page):
    visit(browser, saved[page], size, scheme)
    wanted = browser.execute_script("return JSON.parse(document.getElementById('charts').textContent)")
    drawn = browser.find_elements("css selector", "[data-chart]:has(svg :is(path, rect, circle))")
    assert len(drawn) == len(wanted) >= 3
    assert browser.execute_script(CUT) == []
    assert browser.execute_script(PALE) == []
    assert requests(browser) == [saved[page].as_uri()]
    assert complaints(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_in_a_browser(browser, saved, size, scheme):
    visit(browser, saved["groups"], size, scheme)
    browser.execute_script(files(axe).joinpath("axe-core", "axe.min.js").read_text("utf-8"))
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    assert browser.execute_async_script(AXE) == []


@pytest.mark.parametrize("size", SIZES)
def test_links_lead_to_what_they_name_in_a_browser(browser, saved, size):
    visit(browser, saved["groups"], size)
    links = browser.find_elements("css selector", "nav a, #summary a")
    assert len(links) >= 10
    for link in links:
        browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", link)
        link.click()
        settle(browser)
        key = link.get_attribute("href").split("#")[1]
        assert browser.current_url.endswith(f"#{key}")
        head = browser.find_element("css selector", f"#{key} h2")
        x, y, height = browser.execute_script(
            "const r = arguments[0].getBoundingClientRect(); return [r.left + 2, r.top + r.height / 2, innerHeight]",
            head,
        )
        assert 0 < y < height
        assert (
            browser.execute_script("return document.elementFromPoint(...arguments).tagName", x, y) == "H2"
        )  # not under nav
    assert complaints(browser) == []


def test_the_lines_of_python_open_in_a_browser(browser, saved):
    visit(browser, saved["groups"])
    for details in browser.find_elements("css selector", "details:has(code)"):
        code = details.find_element("tag name", "code")
        assert not code.is_displayed()
        details.find_element("tag name", "summary").click()
        assert code.is_displayed()
        assert "unmix." in code.text
    assert browser.execute_script(CUT) == []


LARGEST = """
const area = (e) => { const r = e.getBoundingClientRect(); return r.width * r.height; };
const marks = [...document.querySelectorAll(`[data-chart="${arguments[0]}"] g[aria-label] > ${arguments[1]}`)];
const largest = marks.reduce((a, b) => (area(b) > area(a) ? b : a));
largest.scrollIntoView({ block: "center" });
return largest;
"""


@pytest.mark.parametrize("page", ["groups", "many"])
def test_pointing_at_a_picture_tells_its_numbers_in_a_browser(browser, saved, page):
    visit(browser, saved[page])
    charts = browser.execute_script("return JSON.parse(document.getElementById('charts').textContent)")
    pointed = set()
    for key, chart in charts.items():
        if page == "groups" and chart["kind"] == "dots":  # a few rows: each is to be seen
            continue
        largest = browser.execute_script(LARGEST, key, {"curve": "circle", "dots": "path"}.get(chart["kind"], "rect"))
        webdriver.ActionChains(browser).move_to_element(largest).perform()
        settle(browser)
        tip = browser.find_elements("css selector", f"[data-chart='{key}'] g[aria-label='tip'] text")
        assert tip, chart["kind"]
        assert any(c.isdigit() for c in tip[0].get_attribute("textContent"))
        pointed.add(chart["kind"])
    assert pointed >= ({"bars", "columns", "heat", "histogram", "curve"} if page == "groups" else {"dots"})
    assert complaints(browser) == []


def test_pictures_follow_the_window_and_the_colours_in_a_browser(browser, saved):
    visit(browser, saved["groups"], "desktop", "light")
    state = """const svg = document.querySelector(".chart svg");
               return [svg.getBoundingClientRect().width, getComputedStyle(svg.querySelector("rect")).fill]"""
    wide, light = browser.execute_script(state)
    see(browser, "phone", "dark")
    settle(browser)
    narrow, dark = browser.execute_script(state)
    assert narrow < 390 < wide
    assert light != dark
    assert browser.execute_script(CUT) == []


def test_a_printed_page_has_no_links_and_all_lines_of_python_in_a_browser(browser, saved):
    visit(browser, saved["groups"], "desktop", "dark", "print")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    settle(browser)
    assert not browser.find_element("tag name", "nav").is_displayed()
    assert all(code.is_displayed() for code in browser.find_elements("tag name", "code"))
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"  # ink on paper, whatever the screen has
    assert browser.execute_script(PALE) == []


@pytest.mark.parametrize("size", SIZES)
def test_hostile_text_is_shown_and_never_run_in_a_browser(browser, saved, size):
    visit(browser, saved["groups"], size)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    settle(browser)
    assert browser.execute_script("return window.ran ?? 0") == 0
    assert browser.find_elements("css selector", "img, iframe, object, [onerror]") == []
    assert browser.find_element("tag name", "h1").text == NASTY
    for place in ("#summary", "#contents", "#groups", "#odd", "#notes"):
        assert NASTY[:30] in browser.find_element("css selector", place).text
    assert requests(browser) == [saved["groups"].as_uri()]
    assert complaints(browser) == []
