"""Pictures as files: one drawing, an SVG in the page's colours and a PNG on white."""

import pytest

pytest.importorskip("matplotlib")

from tuckergp.paper import pictures


def two_lines():
    made, axes = pictures.figure(1, 2, 4.0, 2.0)
    axes[0, 0].plot([0, 1], [1, 0], label="down")
    axes[0, 1].scatter(range(2_000), range(2_000))
    axes[0, 0].legend()
    return made


def test_a_picture_is_written_as_svg_and_as_png(tmp_path):
    pictures.save(two_lines, "lines", tmp_path)
    svg = (tmp_path / "figures" / "lines.svg").read_text()
    assert svg.startswith('<svg aria-hidden="true" style="aspect-ratio:')
    assert "currentColor" in svg
    assert pictures.INK not in svg
    assert svg.count("<image") == 1  # many points are stored as dots
    assert 'id="lines-' in svg
    assert (tmp_path / "figures" / "lines.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_run_needs_no_png_and_nothing_drawn_is_nothing_written(tmp_path):
    pictures.save(two_lines, "lines", tmp_path, png=False)
    pictures.save(lambda: None, "none", tmp_path)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["lines.svg"]
