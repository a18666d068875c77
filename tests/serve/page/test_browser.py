"""The page in headless Chromium: search, a new person, rating, reasons, the map, the model, surfaces; no harm done."""

import json
import re

import numpy as np
import pytest
from tuckergp.datasets import make_ratings

from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.serve.app import create_app
from tuckergp.serve.pages import PageState

from .browser import CHROMIUM, FLAGS, Visit, Visits, serving
from .conftest import SHORT

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

EVIL = "<script>alert('id')</script>"
IMAGE = "<img src=x onerror=alert(1)>"
SLASHED = "a/b?c#d%20 e"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def harmful():
    """Ratings whose ids, titles and attributes hold markup, and an id with the signs of addresses."""
    made = make_ratings(n_users=40, n_items=40, n_ratings=780, random_state=1)
    names = {made.items["item_id"][0]: EVIL, made.items["item_id"][1]: SLASHED}
    people = {made.users["user_id"][0]: EVIL, made.users["user_id"][1]: SLASHED}

    def renamed(table, key, new):
        values = [new.get(value, value) for value in table[key]]
        return {**table.columns, key: np.array(values, dtype=object)}

    ratings = renamed(made.train, "user_id", people)
    ratings["item_id"] = renamed(made.train, "item_id", names)["item_id"]
    users, items = renamed(made.users, "user_id", people), renamed(made.items, "item_id", names)
    users["occupation"] = np.array([IMAGE, *users["occupation"][1:]], dtype=object)
    items["title"] = np.array([IMAGE, *items["title"][1:]], dtype=object)
    items["genres"] = np.array([f"Drama|{EVIL}", *("|".join(cell) for cell in items["genres"][1:])], dtype=object)
    return TuckerRecommender(**SHORT, objective="value").fit(ratings, users, items)


@pytest.fixture(scope="module")
def person(recommender):
    """Somebody with ratings, and with many items left."""
    users, counts = np.unique(recommender.history_.base.codes[0], return_counts=True)
    return recommender.history_.base.ids[0][users[np.argmin(np.where(counts < 5, 1000, counts))]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def app_of(model, folder, name, **page):
    model.save(folder / name)
    app = create_app(folder / name)
    app.state.page = PageState(**page)
    return app


@pytest.fixture(scope="module")
def site(recommender, ratings, folder):
    with serving(app_of(recommender, folder, "films.tgp", test=ratings.test)) as address:
        yield address


@pytest.fixture(scope="module")
def rated_site(recommender, folder):
    """The same model for tests that change it."""
    with serving(app_of(recommender, folder, "rated.tgp")) as address:
        yield address


@pytest.fixture(scope="module")
def harmful_site(harmful, folder):
    with serving(app_of(harmful, folder, "harmful.tgp", copies=True)) as address:
        yield address


@pytest.fixture(scope="module")
def regression_site(regressor, folder):
    with serving(app_of(regressor, folder, "map.tgp")) as address:
        yield address


@pytest.fixture(scope="module")
def visits(browser):
    return Visits(browser)


@pytest.fixture
def visit(visits, site):
    """A tab in which nothing may go wrong, and that may ask nobody else."""
    yield visits[site]
    assert visits[site].clean()


@pytest.fixture
def rater(visits, rated_site):
    yield visits[rated_site]
    assert visits[rated_site].clean()


@pytest.fixture
def harmed(visits, harmful_site):
    yield visits[harmful_site]
    assert visits[harmful_site].clean()


def test_the_page_loads_within_a_second_and_finds_people(visit, ratings, person):
    visit.open()
    last = "Math.max(...performance.getEntriesByType('resource').map((each) => each.responseEnd))"
    assert any(visit.open().evaluate(last) < 1000 for _ in range(8))  # others may use the machine
    tab = visit.open()
    tab.get_by_label("Find a person").fill(person)
    visit.until("document.querySelectorAll('.found li').length === 1")
    tab.get_by_role("link", name=person).click()
    tab.wait_for_selector("main[data-view=person]")
    assert tab.locator(".list li").count() == 12
    assert tab.locator(".list .whisker").count() == 12
    assert re.match(r"\d\.\d\d ± 0\.\d\d", tab.locator(".list .value").first.text_content())
    own = ratings.train["rating"][ratings.train["user_id"] == person]
    assert f"{len(own)} ratings" in tab.locator(".facts").text_content()


def test_bars_and_whiskers_are_as_long_as_the_numbers_say(visit, recommender, person):
    tab = visit.open(f"person/{person}")
    best = recommender.recommend(person, n=1)
    low, high = recommender.rating_range_
    track, bar, whisker = (
        tab.locator(f".list li:first-child {part}").bounding_box() for part in (".bar", ".full", ".whisker")
    )
    score, std = float(best["score"][0]), float(best["std"][0])
    assert bar["width"] / track["width"] == pytest.approx(min(1, (score - low) / (high - low)), abs=0.01)
    ends = np.clip([score - std, score + std], low, high)
    assert whisker["width"] / track["width"] == pytest.approx((ends[1] - ends[0]) / (high - low), abs=0.01)


def test_each_star_of_a_new_person_moves_the_list(rater):
    tab = rater.open()
    tab.get_by_role("link", name="Start as a new person").click()
    tab.wait_for_selector("main[data-view=person]")
    tab.get_by_label("age", exact=True).fill("30")
    with tab.expect_response("**/recommendations"):
        tab.get_by_label("age", exact=True).press("Tab")
    rater.until("!document.querySelector('.list').hasAttribute('aria-busy')")
    before = tab.locator(".list .what a").all_text_contents()
    first = before[0]
    tab.get_by_role("group", name=f"Rating of {first}").first.get_by_label("1.5 of 5").click()
    tab.wait_for_selector(".moved:not([hidden])")
    told = tab.locator(".moved").text_content()
    assert told.startswith(f"{first}: 1.5. The list: ")
    assert told == tab.locator("#status").text_content()
    after = tab.locator(".list .what a").all_text_contents()
    assert first not in after
    assert tab.locator(".list .move").count() > 0
    for row, title in enumerate(after):  # arrows say how ranks have changed
        arrow = tab.locator(".list li").nth(row).locator(".move")
        was = before.index(title) if title in before else None
        expected = "new" if was is None else "" if was == row else f"{'▲' if was > row else '▼'} {abs(was - row)}"
        assert (arrow.text_content() if arrow.count() else "").split("by ")[-1] == expected
    assert "1 rating" in tab.locator(".facts").text_content()
    other = tab.locator(".side .to-rate .stars").first
    other.get_by_label(re.compile(" 5 of 5")).click()
    rater.until("/2 ratings/.test(document.querySelector('.facts').textContent)")
    tab.locator("details .stars").first.get_by_label(re.compile(" 2 of 5")).click()  # another opinion of the same
    rater.until("/: 2\\. /.test(document.querySelector('.moved').textContent)")
    assert "2 ratings" in tab.locator(".facts").text_content()
    tab.get_by_role("link", name=after[1]).first.click()
    tab.wait_for_selector("main[data-view=item] table.bars")


def test_stars_are_one_stop_and_work_with_the_keyboard(rater):
    tab = rater.open("person/u0009?new=1")
    group = tab.locator(".list .stars").first
    assert group.locator("button[tabindex='0']").count() == 1
    group.locator("button[tabindex='0']").focus()
    for _ in range(3):
        tab.keyboard.press("ArrowLeft")
    focused = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.endswith("3.5 of 5")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".moved:not([hidden])")
    assert ": 3.5. " in tab.locator(".moved").text_content()


def reach(tab, selector, key="Tab"):
    """Press a key until an element has the focus, which must be seen; as who has no mouse does."""
    for _ in range(150):
        tab.keyboard.press(key)
        if tab.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            look = tab.evaluate("(({ outlineStyle, outlineWidth }) => [outlineStyle, parseFloat(outlineWidth)])"
                                "(getComputedStyle(document.activeElement))")  # fmt: skip
            assert look[0] != "none", selector
            assert look[1] >= 1, selector
            return tab.locator(":focus")
    raise AssertionError(f"{key} does not lead to {selector}")


def test_the_keyboard_alone_leads_from_a_search_to_the_model(visit, person, recommender):
    tab = visit.open()
    reach(tab, "input[type=search], input[type=text], input:not([type])")
    tab.keyboard.type(str(person))
    visit.until("document.querySelectorAll('.found li').length === 1")
    assert reach(tab, ".found a").text_content().startswith(str(person))
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main[data-view=person] .list .what a")
    visit.settled()
    title = reach(tab, ".list .what a").text_content()
    stars = reach(tab, ".list .stars button")  # those of one item are one stop
    chosen = stars.get_attribute("aria-label")
    tab.keyboard.press("ArrowLeft")
    assert tab.locator(":focus").get_attribute("aria-label") != chosen
    reach(tab, ".list .what a", "Shift+Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main[data-view=item]")
    visit.settled()
    assert tab.locator("h1").text_content() == title
    assert tab.evaluate("document.activeElement.matches('h1, main')")  # a screen reader goes on there
    tab.wait_for_selector("canvas[data-drawn]")
    reach(tab, "canvas")
    before = tab.locator(".readout").text_content()
    for key in ("ArrowRight", "ArrowRight", "+", "ArrowUp"):
        tab.keyboard.press(key)
    assert tab.locator(".readout").text_content() != before
    reach(tab, "nav a[href='#/model']", "Shift+Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main[data-view=model]")
    visit.settled()
    assert tab.evaluate("document.activeElement.matches('h1, main')")


def test_two_tabs_may_rate_at_once(browser, rater):
    tabs = [rater, Visit(browser, rater.address)]
    for one in tabs:
        one.open("person/u0011")
    count = int(tabs[0].tab.locator(".facts .chip").first.text_content().split()[0])
    for place, one in enumerate(tabs):  # the second has not seen what the first rates
        one.tab.locator(".list li").nth(place).get_by_label(re.compile(" 5 of 5")).click(no_wait_after=True)
    for one in tabs:
        one.tab.wait_for_selector(".moved:not([hidden])")
    assert tabs[1].clean()
    tabs[1].tab.close()
    assert f"{count + 2} ratings" in rater.open("person/u0011").locator(".facts").text_content()


def test_an_item_says_why_what_is_similar_and_how_it_was_rated(visit, recommender, ratings, person):
    item = recommender.recommend(person, n=1)["item_id"][0]
    tab = visit.open(f"item/{item}?person={person}")
    assert not tab.locator(".fault").count()
    waterfall = tab.locator("section", has_text="Why").locator("table.bars")
    numbers = [text.replace("−", "-").replace("+", "") for text in waterfall.locator("td.value").all_text_contents()]
    start, *parts, total = map(float, numbers)
    assert start + sum(parts) == pytest.approx(total, abs=0.06)
    assert total == pytest.approx(recommender.explain(person, item).total, abs=0.006)
    counts = tab.locator("section", has_text="on average").locator("td.value").all_text_contents()
    assert sum(map(int, counts)) == int((ratings.train["item_id"] == item).sum())
    bars = tab.locator("section", has_text="on average").locator(".full").all()
    longest = max(range(len(counts)), key=lambda k: int(counts[k]))
    assert bars[longest].bounding_box()["width"] > 200
    similar = tab.locator("section", has_text="Similar items").locator("li a")
    titles = dict(zip(ratings.items["item_id"], ratings.items["title"], strict=True))
    assert similar.all_text_contents() == [titles[k] for k in recommender.similar_items(item, n=8)["item_id"]]
    tab.wait_for_selector("canvas[data-drawn]")
    similar.first.click()
    visit.until(f"!document.querySelector('h1').textContent.includes({json.dumps(titles[item])})")


def test_an_item_nobody_rated_and_a_person_without_ratings_are_shown(visit, recommender):
    cold_item = next(k for k in recommender.layout_.sides[1].ids if not len(recommender.history_.of_item(k)))
    cold = next(k for k in recommender.layout_.sides[0].ids if k not in recommender.history_.users)
    tab = visit.open(f"item/{cold_item}?person={cold}")
    assert "Nobody has rated it yet" in tab.locator("main").text_content()
    assert "not on the map" in tab.locator("main").text_content()
    tab = visit.open(f"person/{cold}")
    assert "0 ratings" in tab.locator(".facts").text_content()
    assert tab.locator(".list li").count() == 12


def test_the_map_pans_zooms_and_names_items(visit, recommender):
    tab = visit.open("map")
    tab.wait_for_selector("canvas[data-drawn]")
    canvas = tab.locator("canvas")
    assert _coloured(tab) > 50
    tab.get_by_label("Find an item on the map").fill("the")
    name = tab.locator(".readout").text_content()
    assert "the" in name.lower()
    before = canvas.screenshot()
    canvas.focus()
    tab.keyboard.press("+")
    tab.keyboard.press("ArrowLeft")
    assert canvas.screenshot() != before
    assert "ratings" in tab.locator(".readout").text_content()
    box = canvas.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.mouse.wheel(0, -400)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2 + 80, box["y"] + box["height"] / 2 + 30)
    tab.mouse.up()
    assert tab.url.endswith("#/map")  # a drag is no click
    tab.get_by_label("Show all").click()
    genre = tab.locator(".legend button").first
    genre.click()
    assert tab.locator(".legend button").first.get_attribute("aria-pressed") == "true"
    canvas.focus()
    tab.keyboard.press("+")
    named = tab.locator(".readout").text_content().split(" · ")[0]
    tab.keyboard.press("Enter")
    tab.wait_for_selector("main[data-view=item]")
    assert tab.locator("h1").text_content() == named


def _coloured(tab):
    """How many pixels of the canvas are neither clear nor grey."""
    return tab.evaluate("""() => {
      const canvas = document.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let k = 0; k < data.length; k += 4) n += Math.abs(data[k] - data[k + 2]) > 40 && data[k + 3] > 0;
      return n;
    }""")


def test_the_model_page_says_how_accurate_it_is_and_by_what(visit, recommender, ratings):
    tab = visit.open("model")
    text = tab.locator("main").text_content()
    error = np.sqrt(np.mean((ratings.test["rating"] - recommender.predict(ratings.test)) ** 2))
    shown = float(tab.locator(".big dd").first.text_content())
    assert shown == pytest.approx(error, abs=0.0006)
    assert "held-out data, which the model has never seen" in text
    assert tab.locator("svg[aria-label^=Calibration] circle").count() == 9
    assert "R-hat" in text
    assert tab.locator("section", has_text="What counts").locator("tbody tr").count() >= 6
    assert "1,206" in text


def test_markup_in_ids_titles_and_attributes_is_text(harmed):
    tab = harmed.open()
    tab.get_by_label("Find a person").fill("<script")
    harmed.until("document.querySelectorAll('.found li').length === 1")
    assert EVIL in tab.locator(".found").text_content()
    evil, slashed = (_encoded(tab, text) for text in (EVIL, SLASHED))
    texts = []
    for route in (
        f"item/{evil}?person={evil}",
        "map",
        "model",
        f"item/{slashed}",
        f"person/{slashed}",
        f"person/{evil}",
    ):
        tab = harmed.open(route)
        assert not tab.locator(".fault").count(), route
        assert tab.locator("main script, main img").count() == 0
        texts.append([text for part in ("h1", ".facts") for text in tab.locator(part).all_text_contents()])
    (title, facts), (_, described) = texts[0], texts[-1]
    assert (title, EVIL in facts, IMAGE in described) == (IMAGE, True, True)
    tab.locator(".list .stars").first.get_by_label(re.compile(" 5 of 5")).click()
    tab.wait_for_selector(".moved:not([hidden])")


def _encoded(tab, text):
    return tab.evaluate("encodeURIComponent", text)


def test_lists_by_value_rating_and_choice_and_a_copy_that_is_measured(harmed):
    seen, tab = harmed, harmed.open("person/nobody?new=1")
    assert tab.locator(".list .whisker").count() == 12  # of somebody new, too
    tab.locator(".list .stars").first.get_by_label(re.compile(" 5 of 5")).click()
    tab.wait_for_selector(".moved:not([hidden])")
    by_value = tab.locator(".list .what").all_text_contents()
    assert tab.locator(".list .whisker").count() == 12
    with tab.expect_response("**/recommendations"):
        tab.get_by_label("by", exact=True).select_option("rating")
    first = "document.querySelector('.list .what').textContent"
    seen.until(f"{first} !== {json.dumps(by_value[0])} && document.querySelectorAll('.list .whisker').length === 12")
    shown = [float(text.split()[0]) for text in tab.locator(".list .value").all_text_contents()]
    assert shown == sorted(shown, reverse=True)
    assert tab.locator(".list .what").all_text_contents() != by_value
    tab = seen.open("model")
    assert "errors at known data would flatter it" in tab.locator("main").text_content()
    tab.get_by_role("button", name="Measure with a copy").click()
    tab.wait_for_selector("svg[aria-label^=Calibration]", timeout=60_000)
    assert "Of a copy of the model" in tab.locator("main").text_content()


def test_a_regression_model_is_a_map_or_a_series_with_sliders(visits, regression_site):
    seen = visits[regression_site]
    tab = seen.open()
    tab.wait_for_selector(".surface[data-drawn='longitude latitude'] canvas")
    assert tab.locator(".multiples canvas").count() == 4
    before = tab.locator("canvas.heat").first.get_attribute("aria-label")
    tab.get_by_role("slider", name="season").fill("0")
    seen.until(f"document.querySelector('canvas.heat').getAttribute('aria-label') !== {json.dumps(before)}")
    assert tab.locator(".slider output").first.text_content() == "dry"
    tab.get_by_label("Uncertainty").check()
    assert "Standard deviation" in tab.locator("canvas.heat").first.get_attribute("aria-label")
    tab.get_by_label("and", exact=True).select_option("")
    tab.wait_for_selector(".surface[data-drawn='longitude'] svg path.band")
    box = tab.locator(".surface > svg").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "with probability 90 %" in tab.locator(".readout").text_content()
    tab = seen.open("model")
    assert "Not known" in tab.locator("main").text_content()
    assert seen.clean()


@pytest.mark.parametrize(
    ("hours", "ends"), [(1, ["2024-02-28 06:00", "2024-02-29 21:00"]), (24, ["2024-02-28", "2024-04-07"])]
)
def test_texts_are_shown_whole_and_times_as_exact_as_an_axis_is_long(browser, folder, hours, ends):
    rng = np.random.default_rng(0)
    when = np.datetime64("2024-02-28T06") + hours * np.arange(40).astype("timedelta64[h]")
    table = {"city": rng.choice(["Tokyo", "East Town", "bonn"], 40).tolist(), "when": when}
    model = TuckerGPRegressor(rank=2, draws=8, warmup=4, random_state=0).fit(table, rng.standard_normal(40))
    with serving(app_of(model, folder, f"texts{hours}.tgp")) as address:
        seen = Visit(browser, address)
        tab = seen.open()
        tab.wait_for_selector(".surface[data-drawn='when'] svg")
        scale = "(({ width }, box) => width / box.width)(each.getBoundingClientRect(), each.viewBox.baseVal)"
        seen.until(f"((each) => {scale} < 1.4)(document.querySelector('.surface > svg'))")  # letters of a usual size
        tab.get_by_role("slider", name="city").fill("0")
        assert tab.locator(".slider output").first.text_content() == "East Town"
        tab.get_by_label("and", exact=True).select_option("city")
        tab.wait_for_selector(".surface[data-drawn='when city'] canvas.heat")
        words = tab.locator("canvas.heat").first.get_attribute("aria-label")
        assert f"when from {ends[0]} to {ends[1]}, city from East Town to bonn" in words
        assert seen.clean()
        tab.close()


LARGE = 2**60  # beyond the integers that JavaScript has
PLAIN = {"user_id": [1, 1, 1, 2, 2, 3, 3, 3], "item_id": [LARGE + k for k in (1, 2, 3, 1, 3, 2, 3, 4)]}


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"inference": "als"}, {"rating": [5.0, 3.0, 1.0, 4.0, 2.0, 1.0, 5.0, 3.0]}),
        ({"likelihood": "ordinal", "draws": 8, "warmup": 4}, {"rating": [5.0, 3.0, 1.0, 4.0, 2.0, 1.0, 5.0, 3.0]}),
        ({"draws": 8, "warmup": 4}, {"rating": [0.5, 55.1, 71.0, 10.2, 33.3, 91.0, 20.5, 63.7]}),
    ],
    ids=["point estimate", "levels", "any number"],
)
def test_other_models_with_whole_ids_and_without_titles_are_shown(browser, folder, settings, given):
    model = TuckerRecommender(rank=2, time=None, random_state=0, **settings).fit({**PLAIN, **given})
    with serving(app_of(model, folder, "other.tgp")) as address:
        seen = Visit(browser, address)
        for route in ("map", "model", f"item/{LARGE + 4}?person=2"):
            assert not seen.open(route).locator(".fault").count(), route
        tab = seen.open("person/2")
        assert sorted(tab.locator(".list .what").all_text_contents()) == [str(LARGE + 2), str(LARGE + 4)]
        if len(set(given["rating"])) > 5:
            tab.locator(".list input").first.fill("80")
            tab.get_by_role("button", name="Rate").first.click()
        else:
            tab.locator(".list .stars").first.get_by_label(re.compile(" 5 of 5")).click()
        tab.wait_for_selector(".moved:not([hidden])")
        assert tab.locator(".list li").count() == 1
        tab = seen.open()
        tab.get_by_role("link", name="Start as a new person").click()
        tab.wait_for_selector("main[data-view=person]")
        assert tab.locator(".list li").count() == 4
        assert seen.clean()
        tab.close()


def test_blank_ids_and_titles_can_be_clicked(browser, folder):
    ids = {"user_id": ["", "ann", " ", "bob", "", "ann", "bob"], "item_id": ["", "", "b", "c", "c", "d", "e"]}
    titles = {"item_id": ["", "b", "c", "d", "e"], "title": ["", None, "  ", "D", "E"]}
    model = TuckerRecommender(rank=2, time=None, inference="als", random_state=0)
    model.fit({**ids, "rating": [5.0, 3.0, 1.0, 4.0, 2.0, 1.0, 5.0]}, items=titles)
    with serving(app_of(model, folder, "blank.tgp")) as address:
        seen = Visit(browser, address)
        tab = seen.open()
        assert sorted(tab.locator(".found .name").all_text_contents()) == ["(no name)", "(no name)", "ann", "bob"]
        tab.get_by_role("link", name="(no name)").first.click()
        tab.wait_for_selector("main[data-view=person] .list li")
        assert tab.locator("h1").text_content() == "(no name)"
        assert sorted(tab.locator(".list .what").all_text_contents()) == ["D", "E", "b"]
        tab.locator(".list .stars").first.get_by_label(re.compile(" 5 of 5")).click()
        tab.wait_for_selector(".moved:not([hidden])")
        tab = seen.open("item/?person=")
        assert tab.locator("h1").text_content() == "(no name)"
        assert not tab.locator(".fault").count()
        assert tab.locator("section", has_text="Why").locator("table.bars").count() == 1
        assert seen.clean()
        tab.close()


def test_clicks_are_chosen_and_listed(browser, folder, clicks):
    with serving(app_of(clicks, folder, "clicks.tgp")) as address:
        seen = Visit(browser, address)
        for route in ("model", "item/i0003?person=u0004"):
            assert not seen.open(route).locator(".fault").count(), route
        assert "from which a probability of 0." in seen.tab.locator("section", has_text="Why").text_content()
        tab = seen.open("person/visitor?new=1")
        first = tab.locator(".list .what").first.text_content()
        tab.locator(".list .choose").first.click()
        tab.wait_for_selector(".moved:not([hidden])")
        assert tab.locator(".moved").text_content().startswith(f"Chosen: {first}.")
        assert first not in tab.locator(".list").text_content()
        assert not seen.said
        tab.close()


def test_a_model_that_was_saved_without_ratings_shows_none(browser, folder, recommender):
    recommender.save(folder / "bare.tgp", ratings=False)
    with serving(create_app(folder / "bare.tgp")) as address:
        seen = Visit(browser, address)
        tab = seen.open("model")
        assert "The model was saved without its ratings." in tab.locator("main").text_content()
        assert "distributed" not in tab.locator("main").text_content()
        assert "saved without ratings" in seen.open("item/i0003").locator("main").text_content()
        assert seen.clean()
        tab.close()


def test_a_server_with_a_token_is_asked_with_it(browser, recommender, folder):
    recommender.save(folder / "secret.tgp")
    with serving(create_app(folder / "secret.tgp", token="open-sesame-0123")) as address:
        seen = Visit(browser, address)
        seen.tab.goto(address)
        seen.tab.get_by_label("Token", exact=True).fill("ä")  # which no header can hold
        seen.tab.get_by_role("button", name="Go on").click()
        seen.tab.keyboard.press("Escape")
        assert "asks for its access token" in seen.tab.locator(".fault").text_content()
        seen.tab.reload()
        for word in ("wrong", "open-sesame-0123"):
            seen.tab.get_by_label("Token", exact=True).fill(word)
            seen.tab.get_by_role("button", name="Go on").click()
        seen.tab.wait_for_selector("main[data-view=people]")
        assert seen.tab.locator(".found li").count() == 12
        seen.tab.close()


def test_an_unknown_person_is_refused_with_a_sentence(visits, site):
    tab = visits[site].open("person/U0001")
    assert "Did you mean 'u0001'?" in tab.locator(".fault").text_content()
    assert tab.get_by_role("link", name="Back to the start").count() == 1
    visits[site].clean()  # the browser says that the answer was 404


def test_a_view_that_comes_late_does_not_take_the_place_of_a_later_one(browser, site):
    seen, held = Visit(browser, site), []
    seen.tab.route("**/page/map", lambda route: held.append(route))
    seen.tab.goto(f"{site}/#/map")
    seen.tab.get_by_role("link", name="People").click()
    seen.tab.wait_for_selector("main[data-view=people]")
    with seen.tab.expect_response("**/page/map"):
        held[0].continue_()
    seen.tab.wait_for_timeout(100)
    assert "Who is it for?" in seen.tab.locator("h1").text_content()
    seen.tab.close()


def test_no_serious_accessibility_fault_and_room_on_a_phone(browser, site, regression_site, person):
    """Each view once; in the dark, which has its own colours alone, some of them."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe, of the extra test").Axe()
    routes = ("", f"person/{person}", "person/none?new=1", f"item/i0003?person={person}", "map", "model")
    views = [*((site, route) for route in routes), (regression_site, ""), (regression_site, "model")]
    quick = {"resultTypes": ["violations"]}
    contrast = {**quick, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
    phone = {at: Visit(browser, at, viewport={"width": 360, "height": 740}) for at in (site, regression_site)}
    papers = set()
    for number, (address, route) in enumerate(views):
        tab = phone[address].open(route)
        shrunk = "(({ width }, box) => width < 0.6 * box.width)(each.getBoundingClientRect(), each.viewBox.baseVal)"
        small = f"[...document.querySelectorAll('main svg.plot')].some((each) => {shrunk})"
        assert not tab.evaluate(small), route  # letters of a plot would be too small to read
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360, route
        for scheme, options in (("dark", contrast), ("light", quick))[number % 3 != 1 :]:
            tab.emulate_media(color_scheme=scheme)
            papers.add((scheme, tab.evaluate("getComputedStyle(document.body).backgroundColor")))
            found = axe.run(tab, options=options).response["violations"]
            bad = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
            assert not bad, (route, scheme)
    for seen in phone.values():
        seen.tab.close()
    assert papers == {("light", "rgb(247, 246, 243)"), ("dark", "rgb(21, 24, 27)")}


def test_nothing_is_inline_and_nothing_comes_from_elsewhere():
    from tuckergp.serve.static import page_files

    for address, (content, _) in page_files().items():
        text = content.decode()
        assert "innerHTML" not in text, address
        assert "eval(" not in text, address
        if address.endswith("html"):
            assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", text)
            assert all(link.startswith(("/", "#")) for link in re.findall(r'(?:src|href)="([^"]*)"', text))
        elsewhere = set(re.findall(r"https?://[^\s\"')]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not elsewhere, address
