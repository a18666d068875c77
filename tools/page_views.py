"""All views of the page as pictures, to be looked at: light, dark, and on a phone.

`python tools/page_views.py FOLDER` needs the extras serve and test, and Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.models import map_model
from tests.serve.page.browser import CHROMIUM, FLAGS, Visit, serving

from tuckergp import TuckerGPRegressor
from tuckergp.cli.explore import demo_model
from tuckergp.serve.app import create_app
from tuckergp.serve.pages import PageState

WIDE, PHONE = {"width": 1240, "height": 860}, {"width": 360, "height": 740}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": WIDE, "color_scheme": "light"},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light"},
}
RECOMMENDER = {
    "start": "",
    "person": "person/u0001",
    "new_person": "person/a-visitor?new=1",
    "item": "item/i0001?person=u0001",
    "map": "map",
    "model": "model",
}
REGRESSION = {"start": "", "model": "model"}


def series_model() -> TuckerGPRegressor:
    """Two outputs over days, hours and a site."""
    rng = np.random.default_rng(0)
    n = 600
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, size=n)
    hour, site = rng.uniform(0, 24, n), rng.choice(["north", "south", "valley"], n)
    year = (day - np.datetime64("2024-01-01")).astype(float) / 366
    warm = 12 - 9 * np.cos(2 * np.pi * year) + 3 * np.sin(2 * np.pi * (hour - 8) / 24) - 2 * (site == "north")
    wet = 60 + 15 * np.cos(2 * np.pi * year) - 4 * np.sin(2 * np.pi * (hour - 8) / 24)
    y = np.column_stack([warm, wet]) + rng.standard_normal((n, 2))
    return TuckerGPRegressor(rank=3, draws=40, warmup=40, random_state=0).fit(
        {"day": day, "hour": hour, "site": site}, y
    )


def main(target: str) -> None:
    """Fit the models, and take a picture of each view in each look."""
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as running:
        held_out = demo_model(Path(place) / "demo.tgp", seed=0)
        map_model().save(Path(place) / "map.tgp")
        series_model().save(Path(place) / "series.tgp")
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        sites = {"demo": RECOMMENDER, "map": REGRESSION, "series": REGRESSION}
        for name, views in sites.items():
            app = create_app(Path(place) / f"{name}.tgp")
            app.state.page = PageState(held_out if name == "demo" else None)
            with serving(app) as address:
                for look, settings in LOOKS.items():
                    visit = Visit(browser, address, **settings)
                    for view, route in views.items():
                        tab = visit.open(route)
                        tab.wait_for_timeout(1500)
                        tab.screenshot(path=folder / f"{name}-{view}-{look}.png", full_page=True)
                    visit.tab.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
