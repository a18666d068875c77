"""The page in a browser: nothing is asked of the network, no errors, every figure drawn, room on a phone."""

import json
import re
import shutil
import subprocess

import pytest

from tuckergp.paper import report
from tuckergp.paper.experiment import Experiment, Picture, Table, Text
from tuckergp.paper.writer import markdown, page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
]  # fmt: skip
# Put at the end of the page: what a reader would see, as JSON in the page's title
LOOK = """<script>
const seen = [...document.querySelectorAll("figure")].map(one => {
  const box = one.querySelector("svg").getBoundingClientRect();
  const drawn = [...one.querySelectorAll("path, image, use")].filter(part => part.getBoundingClientRect().width > 0);
  return [one.id.replace("figure-", ""), box.width, box.height, drawn.length];
});
const style = getComputedStyle(document.body);
document.title = JSON.stringify({seen, wide: document.documentElement.scrollWidth, window: window.innerWidth,
  ink: style.color, paper: style.backgroundColor});
</script>"""


def browse(path, tmp_path, *flags):
    """What the browser makes of the page, and what its console says."""
    looked = tmp_path / "looked.html"
    looked.write_text(path.read_text().replace("</body>", f"{LOOK}</body>"))
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", looked.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    title = re.search(r"<title>(.*?)</title>", done.stdout, flags=re.S)[1]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(title.replace("&quot;", '"').replace("&amp;", "&")), console


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("size", [(1200, 900), (500, 800)])
def test_a_browser_draws_every_figure_without_complaint(quick, tmp_path, size):
    found, console = browse(quick / report.REPORT, tmp_path, "--window-size={},{}".format(*size))
    assert not console
    expected = re.findall(r'<figure id="figure-([^"]+)"', (quick / report.REPORT).read_text())
    assert {"movielens_paper", "movielens_calibration", "california_curves", "california_map"} <= set(expected)
    assert {"california_components", "california_components_la", "wind", "wind_chain"} <= set(expected)
    assert [name for name, *_ in found["seen"]] == expected
    for name, width, height, drawn in found["seen"]:
        assert width > 200, name
        assert height > 100, name
        assert drawn > 10, name
    assert found["wide"] <= found["window"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_reader_in_the_dark_gets_light_words_on_a_dark_page(quick, tmp_path):
    light, _ = browse(quick / report.REPORT, tmp_path)
    dark, _ = browse(quick / report.REPORT, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert light["ink"] == dark["paper"].replace("20, 23, 26", "28, 32, 36")
    assert light["paper"] == "rgb(255, 255, 255)"
    assert dark["paper"] == "rgb(20, 23, 26)"


def test_the_page_asks_nothing_of_the_network(quick):
    text = (quick / report.REPORT).read_text()
    addresses = set(re.findall(r'(?:src|href|url\()\s*=?\s*"?(\w+:[^"\s)]{0,20})', text))
    assert all(address.startswith("data:") for address in addresses)
    assert "<script" not in text
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert all(f'href="#{name}"' not in text or name in names for name in re.findall(r'href="#([^"]+)"', text))


def test_every_picture_has_words_for_those_who_cannot_see_it(quick):
    text = (quick / report.REPORT).read_text()
    assert text.count("<figure") == len(re.findall(r'role="img" aria-label="[^"]{20,}"', text))


def test_words_are_escaped_and_tables_keep_their_cells(tmp_path):
    rows = [["x", "y"], ["`k < 1`", "**0.5**"], ["0.9 ± 0.1", ""]]
    blocks = (Text("1 < 2"), Table("t", "a < b", lambda cells: rows), Table("none", "nothing", lambda cells: [["x"]]))
    experiment = Experiment("one", "First & last", "one", "", lambda run: {}, (*blocks, Picture("p", "", "none drawn")))
    found = page([("one", "One & all", [(experiment, {})])], {"versions": "<none>"}, tmp_path)
    assert "<h2>One &amp; all</h2>" in found
    assert "First" not in found  # a section of one experiment has one title
    assert "<p>1 &lt; 2</p>" in found
    assert "<caption>a &lt; b</caption>" in found
    assert "<td><code>k &lt; 1</code></td><td><strong>0.5</strong></td>" in found
    assert "<td class=number>0.9 ± 0.1</td><td></td>" in found
    assert "&lt;none&gt;" in found
    assert "nothing" not in found
    assert "<figure" not in found
    assert markdown(rows).splitlines()[1:3] == ["|---|---|", "| `k < 1` | **0.5** |"]
    both = page([("one", "One", [(experiment, {}), (experiment, {})])], {}, tmp_path)
    assert both.count("<h3>First &amp; last</h3>") == 2


def test_the_paper_is_beside_ours_in_the_report_of_the_stored_results(tmp_path):
    from ..test_experiments import RESULTS

    tables = report.tables(RESULTS)
    for name, value in {
        "movielens_paper": "0.9024 ± 0.0050",
        "california_curves": "0.2778",
        "wind": "4.8996 / 4.9735",
        "california_mixing": "2.67 ± 1.34",
    }.items():
        assert any(value in row for row in tables[name]), name
    assert report.stored(tmp_path) == {}
