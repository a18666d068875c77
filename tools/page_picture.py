"""The picture of the page in README and documentation: a new person after some ratings, in the demo's model.

`python tools/page_picture.py docs/figures/explore.png` needs the extras serve and test, and Chromium.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.page.browser import CHROMIUM, FLAGS, Visit, serving

from tuckergp.cli.explore import demo_model
from tuckergp.serve.app import create_app

RATED = {"Season": 5, "Hotel": 2, "Garden": 4}
SIZE = {"width": 1240, "height": 860}


def main(path: str) -> None:
    """Fit the demo's model, rate items as a new person, and take the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        model = Path(folder) / "demo.tgp"
        demo_model(model, seed=0)
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with serving(create_app(model)) as address:
            visit = Visit(browser, address, viewport=SIZE)
            tab = visit.open("person/a-visitor?new=1")
            tab.get_by_label("age", exact=True).fill("34")
            tab.get_by_label("occupation", exact=True).select_option("teacher")
            tab.get_by_label("by", exact=True).select_option("rating")
            for number, (word, stars) in enumerate(RATED.items(), start=1):
                tab.get_by_label("Find an item").fill(word)
                star = tab.locator(".side .stars").first.get_by_label(re.compile(f"{word}.* {stars} of 5"))
                star.click()
                visit.until(f"document.querySelector('.facts').textContent.startsWith('{number} rating')")
            tab.get_by_label("Find an item").fill("")
            tab.mouse.move(5, 500)
            tab.evaluate("document.activeElement.blur()")
            tab.wait_for_timeout(1000)
            tab.screenshot(path=path)
        browser.close()
    Image.open(path).convert("RGB").quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
