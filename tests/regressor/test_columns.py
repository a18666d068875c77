"""What X may be: kinds of columns, columns by name or place, and modes in short."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import DataWarning, InputError
from tuckergp.gp import ExactGP
from tuckergp.kernels import SE, Identity, Linear, Matern32

pytestmark = pytest.mark.filterwarnings("ignore:The draws have not mixed", "ignore:X (does not have|has)")
N = 40
CURVE = Linear() + Matern32(1.0)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = FRAME["a"].to_numpy() + 0.1 * RNG.normal(size=N)
DAYS = pd.date_range("2000-01-01", periods=N)


def make(modes=None):
    return TuckerGPRegressor(modes, rank=2, draws=5, warmup=5, random_state=0)


def test_an_array_after_a_data_frame_has_its_columns_in_the_same_order():
    for model in (make(), ExactGP(max_iter=3)):
        model.fit(FRAME, Y)
        np.testing.assert_array_equal(model.predict(FRAME.to_numpy()), model.predict(FRAME))
        with pytest.raises(ValueError, match="X has 1 features"):
            model.predict(FRAME.to_numpy()[:, :1])


def test_an_array_of_objects_after_a_data_frame_may_hold_text():
    frame = FRAME.assign(c=np.where(FRAME["a"] > 0, "u", "v"))
    model = make().fit(frame, Y)
    np.testing.assert_array_equal(model.predict(frame.to_numpy()), model.predict(frame))


def test_a_data_frame_after_an_array_has_its_columns_in_the_same_order():
    model = make().fit(FRAME.to_numpy(), Y)
    expected = model.predict(FRAME.to_numpy())
    np.testing.assert_array_equal(model.predict(FRAME), expected)
    turned = pd.DataFrame({"x1": FRAME["b"], "x0": FRAME["a"]})  # names that are those of the array
    np.testing.assert_array_equal(model.predict(turned), expected)


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (pd.to_timedelta(np.arange(N), "h"), np.arange(N) / 24),
        ([datetime.timedelta(days=k) for k in range(N)], np.arange(N)),
        (pd.period_range("2000-01", periods=N, freq="D"), np.arange(N)),
        (list(DAYS.date), np.arange(N)),
        ([Decimal(k) for k in range(N)], np.arange(N)),
    ],
    ids=["timedelta", "durations", "period", "date", "decimal"],
)
def test_durations_periods_dates_and_decimals_are_numbers(values, numbers):
    model, y = make(), np.sin(np.arange(N) / 5)
    predicted = model.fit(pd.DataFrame({"t": values}), y).predict(pd.DataFrame({"t": values}))
    assert model.learned_modes_[0].kernel == CURVE
    expected = make().fit(pd.DataFrame({"t": numbers}), y).predict(pd.DataFrame({"t": numbers}))
    np.testing.assert_allclose(predicted, expected, rtol=1e-6)


def test_complex_numbers_are_refused():
    with pytest.raises(InputError, match="X column 't' holds complex numbers; give their real and imaginary parts"):
        make().fit(pd.DataFrame({"t": np.arange(N) * 1j}), Y)


def test_dates_may_be_text_where_training_had_dates(tmp_path):
    frame = pd.DataFrame({"t": DAYS})
    model = make().fit(frame, Y)
    model.save(tmp_path / "model.tgp")
    new = pd.DataFrame({"t": pd.to_datetime(["2000-01-05", "2000-01-09T12:00"], format="ISO8601")})
    for each in (model, load(tmp_path / "model.tgp")):
        asked = {"t": ["2000-01-05", "2000-01-09T14:00+02:00"]}
        np.testing.assert_array_equal(each.predict(asked), model.predict(new))
    with pytest.raises(InputError, match="'t' must hold dates, but row 1 holds 'soon'; write them as 2000-12-31"):
        model.predict({"t": ["2000-01-05", "soon"]})


def test_dates_are_no_numbers_nor_numbers_dates():
    days = np.arange("2000-01-01", "2000-01-21", dtype="datetime64[D]")
    for given, other in ((days, np.arange(20.0)), (np.arange(20.0), days)):
        model = make([Mode("t", SE(3.0))]).fit({"t": given}, np.arange(20.0))
        with pytest.raises(InputError, match=r"column 't' held (dates|numbers) in training, and now holds"):
            model.predict({"t": other})


def test_text_is_dates_for_a_kernel_of_numbers_alone():
    text = pd.DataFrame({"t": DAYS.astype(str)})
    smooth = [Mode("t", SE(1.0), whiten=True)]
    expected = make(smooth).fit(pd.DataFrame({"t": DAYS}), Y).predict(pd.DataFrame({"t": DAYS}))
    np.testing.assert_array_equal(make(smooth).fit(text, Y).predict(text), expected)
    assert make([Mode("t", Identity())]).fit(text, Y).column_kinds_["t"] == "text"


@pytest.mark.parametrize(("then", "now"), [("text", "numbers"), ("numbers", "text")])
def test_levels_of_another_type_are_announced(then, now):
    levels = {"text": np.array(["1", "2", "3"], dtype=object), "numbers": np.array([1, 2, 3])}
    model = make([Mode("c", Identity())]).fit({"c": np.tile(levels[then], 4)}, np.tile([1.0, 2.0, 3.0], 4))
    with pytest.warns(DataWarning, match=f"'c' holds {now}, but {then} in training: .* none of the levels .* Convert"):
        model.predict({"c": levels[now]})
    model.predict({"c": levels[then]})  # without a warning, which would be an error
    model.predict({"c": np.array(["7", None], dtype=object) if then == "text" else np.array([7.0])})


@pytest.mark.parametrize(
    ("short", "modes"),
    [
        (Mode("a", SE(1.0)), [Mode("a", SE(1.0))]),
        (SE(1.0), [Mode(["a", "b"], SE(1.0))]),
        ([Mode(0, SE(1.0))], [Mode("a", SE(1.0))]),
        ([Mode([1, "a"], Linear())], [Mode(["b", "a"], Linear())]),
        (["b", Mode("a", SE(1.0))], [Mode("b", CURVE, whiten=True), Mode("a", SE(1.0))]),
        ([1], [Mode("b", CURVE, whiten=True)]),
    ],
)
def test_modes_in_short(short, modes, tmp_path):
    model = make(short).fit(FRAME, Y)
    assert model.learned_modes_ == modes
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(FRAME), make(modes).fit(FRAME, Y).predict(FRAME))


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ([SE(1.0)], "modes must be a list of at least one Mode, a Mode, a kernel or None"),
        (["c"], "no column 'c'; its columns are a, b"),
        ([2], "A mode asks for column 2, but X has columns 0 to 1"),
        ([Mode(-1, SE(1.0))], "A mode asks for column -1"),
    ],
)
def test_modes_without_a_plain_meaning_are_refused(modes, message):
    with pytest.raises(InputError, match=message):
        make(modes).fit(FRAME, Y)
    for columns in (None, 1.5, [True]):
        with pytest.raises(InputError, match="A mode needs names or numbers of columns"):
            Mode(columns, SE(1.0))


def test_columns_that_no_mode_uses_may_be_missing_or_hold_anything():
    model = make([Mode("a", SE(1.0))]).fit(FRAME.assign(b=np.nan), Y)
    expected = model.predict(FRAME)
    for asked in (FRAME[["a"]], {"a": FRAME["a"]}, FRAME[["b", "a"]], FRAME.assign(b="x", c=1)):
        np.testing.assert_array_equal(model.predict(asked), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAME[["b"]])
    with pytest.raises(InputError, match="X has no column 'a'"):
        model.predict({"b": [1.0]})
    asked = make([Mode("a", SE(1.0))]).fit(FRAME, Y, moments_of=FRAME[["a"]].iloc[:3])
    assert asked.moments_.mean.shape == (3,)


def test_dates_in_text_are_dates_unless_a_mode_says_otherwise():
    texts = FRAME.assign(day=DAYS.strftime("%Y-%m-%d").to_numpy())
    dates = FRAME.assign(day=DAYS)
    model = make().fit(texts, Y)
    np.testing.assert_array_equal(model.predict(texts), make().fit(dates, Y).predict(dates))
    assert model.column_kinds_["day"] == "dates"
    levels = make([Mode("day", Identity())]).fit(texts, Y)
    assert levels.column_kinds_["day"] != "dates"
    for other in ("20000101", "2000-13-45", "soon"):  # numbers, no dates, and text among dates
        assert make().fit(texts.assign(day=[other, *texts["day"][1:]]), Y).column_kinds_["day"] != "dates"


def test_lists_after_a_data_frame_may_hold_text_and_lazy_frames_are_collected():
    frame = FRAME.assign(c=np.where(FRAME["a"] > 0, "u", "v"))
    model = make().fit(frame, Y)
    expected = model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame.to_numpy().tolist()), expected)
    lazy = pl.DataFrame({name: frame[name].tolist() for name in frame}).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pl.exceptions.PerformanceWarning)
        np.testing.assert_array_equal(make().fit(lazy, Y).predict(lazy), expected)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (Y, Y, r"Expected 2D array, got 1D array instead\. Reshape your data [^\n]*$"),
        (FRAME["a"], Y, "Expected a 2-dimensional container but got"),
        (FRAME.to_numpy()[:, :0], Y, r"Found array with 0 feature\(s\)"),
        (
            [["u", 1.0]] * N,
            Y,
            "could not convert string to float: 'u'; give columns with text in a data frame or a dict",
        ),
        (FRAME, "a", r"y should be a 1d array, got an array of shape \(\) instead"),
        (FRAME, np.ones((len(Y), 2, 2)), "Found array with dim 3"),
    ],
)
def test_shapes_that_are_wrong_are_input_errors_without_a_dump_of_the_data(X, y, message):
    with pytest.raises(InputError, match=message):
        make().fit(X, y)


def test_columns_are_read_by_what_they_hold_and_a_report_says_how(tmp_path):
    rng = np.random.default_rng(2)
    columns = {
        "number": rng.normal(size=N),
        "level": np.tile([1, 2, 3, 4], N // 4),
        "switch": np.tile([0.0, 5.0], N // 2),
        "flag": np.tile([True, False], N // 2),
        "day": DAYS,
        "colour": np.tile(["red", "green"], N // 2),
        "same": np.full(N, 7.0),
        "name": [f"row {k}" for k in range(N)],
    }
    y = columns["number"] + columns["switch"] + rng.normal(size=N)
    model = make().fit(pd.DataFrame(columns), y)
    curves = dict.fromkeys(("number", "level", "day"), "line")
    used = {
        **curves,
        "switch": "features",
        "flag": "features",
        "colour": "levels",
        "same": "not used",
        "name": "not used",
    }
    assert {name: use.use for name, use in model.features_.items()} == used
    kernels = {mode.columns[0]: mode.kernel for mode in model.learned_modes_}
    assert kernels == {**dict.fromkeys(curves, CURVE), "switch": Linear(), "flag": Linear(), "colour": Identity()}
    assert "same    numbers       not used  constant" in str(model.features_)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    assert again.features_ == model.features_
    fewer = pd.DataFrame({name: columns[name] for name in kernels})  # what is not used may be left out
    np.testing.assert_array_equal(again.predict(fewer), model.predict(pd.DataFrame(columns)))
