"""Pictures of the report for the pages, which are kept, since they take a browser.

`python -m docs.screenshots`, with Chromium, chromedriver and selenium, makes them anew: they show what the lines of the
front page write, and what `make demo` writes.
"""

import base64
import contextlib
import os
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
SHARP = 1.5  # pixels of a picture for one of the page
MARGIN = 20
# Picture: the page, its width, the element where it begins, the one where it ends, the most of its height.
SHOTS = {
    "report-summary": ("wines.html", 760, "body", "#summary", 700),
    "report-groups": ("wines.html", 760, "#groups figure", "#groups figure", 700),
    "report": ("wine-report.html", 960, "body", "#summary", 900),
    "report-odd": ("wine-report.html", 960, "#odd", "#odd", 1000),
}


def write_pages():
    """Run the lines of the front page, and the demo, here."""
    import pictures

    pictures.run(HERE / "index.md")
    runpy.run_path(str(HERE.parent / "examples" / "demo.py"))


def chromium():
    """A browser without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(options)


def take(browser, page, width, first, last, most):
    """The bytes of a picture of the page from one element to the end of another."""
    shown = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shown)
    browser.get(Path(page).resolve().as_uri())
    script = "return document.querySelector(arguments[0]).getBoundingClientRect()"
    box = {name: browser.execute_script(script, name) for name in (first, last)}
    top = max(0, box[first]["top"] - MARGIN)
    clip = {"x": 0, "y": top, "width": width, "height": min(most, box[last]["bottom"] + MARGIN - top), "scale": SHARP}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(found["data"])


def main():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_pages()
        with chromium() as browser:
            for name, how in SHOTS.items():
                (HERE / "_static" / f"{name}.png").write_bytes(take(browser, *how))


if __name__ == "__main__":
    os.environ.setdefault("SE_OFFLINE", "true")  # selenium is to fetch nothing
    main()
