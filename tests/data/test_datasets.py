from __future__ import annotations

import dataclasses
import doctest
import hashlib
import io
import re
import shutil
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tuckergp.data.datasets import (
    california,
    download,
    files,
    load_california,
    load_movielens_100k,
    load_wind,
    movielens,
)
from tuckergp.data.datasets import wind as wind_module
from tuckergp.errors import InputError

LOADERS = {"ml-100k": load_movielens_100k, "california": load_california, "wind": load_wind}
MODULES = {"ml-100k": movielens, "california": california, "wind": wind_module}
CHECKSUMS = {
    "ml-100k/u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "ml-100k/u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
    "ml-100k/u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
    "california/houses.csv": "71326909560b0800595e6d485ce1c58bc75f462f41c8800849a816086346f076",
    "california/permutation.csv": "4090be3999e40414722600a5efe3da7251a60b272fb0dcb02ad5109f5adc9fe9",
    "wind/wind.csv": "860bdc12d6062cb60444aae92089db47704021491c8fa9be13db5c5952abb5ce",
    "wind/stations.csv": "6eabd75bdc1a1b6b0a495c4c8689f6cb36cdcafa1e7d42732088f7486cbb7496",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# What the files say


@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_data_of_these_tests_are_the_published_ones(data_dir, name):
    assert sha256((data_dir / name).read_bytes()) == CHECKSUMS[name]


def test_movielens_has_its_counts_and_kinds(movielens):
    ratings, users, items = movielens.ratings, movielens.users, movielens.items
    assert (len(ratings), len(users), len(items)) == (100_000, 943, 1_682)
    assert set(ratings["user_id"]) == set(users["user_id"]) == set(range(1, 944))
    assert set(ratings["item_id"]) == set(items["item_id"]) == set(range(1, 1_683))
    assert set(ratings["rating"]) == {1, 2, 3, 4, 5}
    assert [ratings[c].dtype.kind for c in ("user_id", "item_id", "rating", "timestamp")] == list("iifi")
    assert list(users.columns) == ["user_id", "age", "sex", "occupation", "zip_code"]
    assert list(items.columns) == ["item_id", "title", "year", "genres"]


def test_movielens_rows_read_as_written(movielens):
    assert [movielens.ratings[c][0] for c in movielens.ratings.columns] == [196, 242, 3.0, 881250949]
    assert [movielens.users[c][7] for c in movielens.users.columns] == [8, 36, "M", "administrator", "05201"]
    assert [movielens.items[c][0] for c in movielens.items.columns] == [
        1, "Toy Story (1995)", 1995.0, ["Animation", "Children's", "Comedy"],
    ]  # fmt: skip
    assert any("é" in title for title in movielens.items["title"])


def test_movielens_genres_agree_with_the_publishers_list(movielens, data_dir):
    listed = [line.split("|")[0] for line in (data_dir / "ml-100k/u.genre").read_text().split()]
    assert listed[0] == "unknown"
    used = {genre for genres in movielens.items["genres"] for genre in genres}
    assert used == set(listed[1:])
    assert len(used) == 18


def test_movielens_unknown_genre_and_year(movielens):
    items = movielens.items
    without = [int(i) for i, genres in zip(items["item_id"], items["genres"], strict=True) if genres == []]
    assert without == [267, 1373]
    assert items["item_id"][np.isnan(items["year"])].tolist() == [267]


def test_movielens_splits_are_disjoint_and_cover_the_ratings(movielens):
    def rows(table):
        return set(zip(*(table[c].tolist() for c in table.columns), strict=True))

    everything, tested = rows(movielens.ratings), []
    for k in range(1, 6):
        train, test = movielens.split(k)
        assert (len(train), len(test)) == (80_000, 20_000)
        assert rows(train) | rows(test) == everything
        assert not rows(train) & rows(test)
        tested.append(rows(test))
    assert set.union(*tested) == everything
    assert sum(map(len, tested)) == 100_000


@pytest.mark.parametrize("k", [0, 6, "one", None])
def test_movielens_has_no_other_splits(movielens, k):
    with pytest.raises(InputError, match="splits 1 to 5"):
        movielens.split(k)


def test_movielens_without_a_split_file_says_which(movielens, data_dir, tmp_path):
    for name in ("u.data", "u.user", "u.item", "u1.base"):
        shutil.copyfile(data_dir / "ml-100k" / name, tmp_path / name)
    with pytest.raises(InputError, match=r"no .*u1\.test"):
        load_movielens_100k(tmp_path).split(1)


def test_california_zero_prediction_has_the_published_error(data_dir):
    data = load_california(data_dir)
    assert len(data.table) == 20_640
    assert (len(data.train), len(data.test)) == (10_320, 10_320)
    assert sorted([*data.train, *data.test]) == list(range(20_640))
    assert data.train[:3].tolist() == [7652, 14040, 14068]
    log_price = np.log(data.table["house_value"])
    error = log_price[data.test] - log_price[data.train].mean()
    assert np.sqrt(np.mean(error**2)) == pytest.approx(0.5709, abs=5e-5)
    assert [data.table[c][0] for c in ("longitude", "latitude", "house_value")] == [-122.23, 37.88, 452_600]


def test_california_without_the_authors_order_is_halved_in_a_fixed_one(data_dir, tmp_path):
    shutil.copyfile(data_dir / "california/houses.csv", tmp_path / "houses.csv")
    data, again = load_california(tmp_path), load_california(tmp_path)
    assert data.permutation is None
    assert (data.train == again.train).all()
    assert sorted([*data.train, *data.test]) == list(range(20_640))
    # a number from the bit generator's published stream, which may never change
    assert data.train[:3].tolist() == np.argsort(np.random.PCG64(0).random_raw(20_640))[:3].tolist()
    assert abs(np.mean(data.train) - 10_319.5) < 300


def test_wind_has_its_published_moments(data_dir):
    wind = load_wind(data_dir)
    speed = wind.values["speed"]
    assert len(wind.values) == 78_888 == 6_574 * 12
    assert speed.mean() == pytest.approx(10.228, abs=5e-4)
    assert speed.std() == pytest.approx(5.604, abs=5e-4)
    assert wind.values["date"].dtype == np.dtype("datetime64[D]")
    assert (wind.values["date"][0], wind.values["date"][-1]) == (
        np.datetime64("1961-01-01"), np.datetime64("1978-12-31"),
    )  # fmt: skip
    assert (wind.values["day"].min(), wind.values["day"].max()) == (0, 6_573)
    assert len(set(zip(wind.values["station"], wind.values["day"].tolist(), strict=True))) == 78_888
    dublin = (wind.values["station"] == "DUB") & (wind.values["date"] == np.datetime64("1978-12-29"))
    assert speed[dublin].tolist() == [19.17]


def test_wind_stations_in_the_code_are_those_in_the_file(data_dir, tmp_path):
    shutil.copyfile(data_dir / "wind/wind.csv", tmp_path / "wind.csv")
    ours, theirs = load_wind(tmp_path).stations, load_wind(data_dir).stations
    for column in theirs.columns:
        assert ours[column].tolist() == theirs[column].tolist()
    assert set(load_wind(tmp_path).values["station"]) == set(ours["station"])


# Where the files are looked for


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A fresh cache, and no data directory in the environment."""
    monkeypatch.delenv("TUCKERGP_DATA", raising=False)
    monkeypatch.setenv("TUCKERGP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", LOADERS)
def test_a_directory_may_be_the_folder_or_its_parent(name, data_dir, cache):
    assert LOADERS[name](data_dir, download=False) is not None
    assert LOADERS[name](str(data_dir / name), download=False) is not None


@pytest.mark.parametrize("name", LOADERS)
def test_the_environment_names_the_directory(name, data_dir, cache, monkeypatch):
    monkeypatch.setenv("TUCKERGP_DATA", str(data_dir))
    assert LOADERS[name](download=False) is not None


def test_the_cache_follows_the_environment_and_else_pooch(monkeypatch, tmp_path):
    import pooch

    monkeypatch.delenv("TUCKERGP_CACHE")
    assert files.cache_directory() == Path(pooch.os_cache("tuckergp"))
    monkeypatch.setenv("TUCKERGP_CACHE", str(tmp_path))
    assert files.cache_directory() == tmp_path


def test_a_directory_without_the_data_is_an_error_even_if_others_have_them(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("TUCKERGP_DATA", str(data_dir))
    with pytest.raises(InputError, match=r"holds no Irish wind: there is no wind\.csv or wind\.data"):
        load_wind(tmp_path)


def test_a_directory_that_is_none_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is not a folder"):
        load_wind(tmp_path / "nowhere")
    monkeypatch.setenv("TUCKERGP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"TUCKERGP_DATA .*nowhere is not a folder"):
        load_wind()


def test_a_part_of_the_files_is_an_error_that_names_the_rest(data_dir, tmp_path):
    (tmp_path / "ml-100k").mkdir()
    shutil.copyfile(data_dir / "ml-100k/u.data", tmp_path / "ml-100k/u.data")
    with pytest.raises(InputError, match=r"but not u\.user, u\.item\. Unpack the whole of https://files\.grouplens"):
        load_movielens_100k(tmp_path)


@pytest.mark.parametrize("name", LOADERS)
def test_without_download_missing_data_are_an_error(name, cache):
    with pytest.raises(InputError, match=r"nor whole in the cache .* Pass download=True"):
        LOADERS[name](download=False)
    assert not cache.exists()


# Lines that are not as they should be


def copy_with_line(source: Path, target: Path, number: int, replacement: str) -> None:
    """A copy of a file in which one line is another."""
    lines = source.read_text(encoding="latin-1").split("\n")
    lines[number - 1] = replacement
    target.write_text("\n".join(lines), encoding="latin-1")


@pytest.mark.parametrize(
    ("file", "line", "replacement", "message"),
    [
        ("ml-100k/u.data", 3, "22\t377\t1", "has 3 fields instead of 4"),
        ("ml-100k/u.data", 5, "", "has 1 fields instead of 4"),
        ("ml-100k/u.data", 100_000, "22\tx\t1\t5", "holds 'x' where the item should be a whole number"),
        ("ml-100k/u.data", 2, "22\t7\tnan\t5", "holds 'nan' where the rating should be a number"),
        ("ml-100k/u.data", 2, "22\t7\t5\t1e3", "where the time should be a whole number"),
        ("ml-100k/u.user", 2, "2|old|F|other|94043", "where the age should be a whole number"),
        ("ml-100k/u.user", 2, "2|53|F|other", "has 4 fields instead of 5"),
        ("ml-100k/u.item", 9, "9|Dead Man", "has 2 fields instead of 24"),
        ("ml-100k/u.item", 9, "9|A||||2" + "|0" * 18, "genre flag"),
        ("ml-100k/u.item", 9, "9|A|Jan-xx|||1" + "|0" * 18, "year of release"),
        ("california/houses.csv", 1, "a,b,c", "is not the header"),
        ("california/houses.csv", 7, "-122.1,37.9", "has 2 fields instead of 3"),
        ("california/houses.csv", 7, "-122.1,37.9,dear", "holds 'dear' where the median_house_value"),
        ("california/houses.csv", 7, "-122.1,inf,5", "where the latitude should be a number"),
        ("california/permutation.csv", 1, "0", "is not the header row"),
        ("california/permutation.csv", 4, "7652", "holds 7652, which is a row twice"),
        ("california/permutation.csv", 4, "20640", "not among the 20640"),
        ("wind/wind.csv", 1, "day,RPT", "is not a header"),
        ("wind/wind.csv", 2, "1961,1,1,5.0", "has 4 fields instead of 15"),
        ("wind/wind.csv", 4, "1961,2,30" + ",5.0" * 12, "1961, 2, 30, which is no date"),
        ("wind/wind.csv", 4, "1961,1,2" + ",5.0" * 12, "does not come after"),
        ("wind/wind.csv", 4, "1961,1,3" + ",5.0" * 11 + ",calm", "holds 'calm' where the speed at MAL"),
        ("wind/stations.csv", 1, "station", "is not the header"),
        ("wind/stations.csv", 3, "BEL,Belmullet,54.2", "has 3 fields instead of 4"),
        ("wind/stations.csv", 3, "BEL,Belmullet,north,-10", "where the latitude should be a number"),
    ],
)
def test_a_malformed_line_is_named(data_dir, tmp_path, file, line, replacement, message):
    folder, name = file.split("/")
    (tmp_path / folder).mkdir()
    for source in (data_dir / folder).iterdir():
        if source.suffix in (".csv", ".data", ".user", ".item"):
            shutil.copyfile(source, tmp_path / folder / source.name)
    copy_with_line(data_dir / file, tmp_path / file, line, replacement)
    with pytest.raises(InputError) as caught:
        LOADERS[folder](tmp_path)
    text = str(caught.value)
    assert f"{name} line {line} " in text
    assert message in text
    assert text.endswith("Mend the line, or put the publisher's file in its place.")


def test_a_changed_but_well_formed_file_of_the_user_is_taken(data_dir, tmp_path):
    for name in ("u.user", "u.item"):
        shutil.copyfile(data_dir / "ml-100k" / name, tmp_path / name)
    (tmp_path / "u.data").write_bytes(b"1\t2\t4.5\t100\r\n3\t4\t5\t200\r\n\r\n")
    assert load_movielens_100k(tmp_path).ratings["rating"].tolist() == [4.5, 5.0]


def test_files_without_rows_are_errors(tmp_path):
    (tmp_path / "houses.csv").write_text("longitude,latitude,median_house_value\n")
    with pytest.raises(InputError, match="a header and no rows"):
        load_california(tmp_path)
    (tmp_path / "houses.csv").write_text("\n\n")
    with pytest.raises(InputError, match="is empty"):
        load_california(tmp_path)
    (tmp_path / "wind.csv").write_text("year,month,day,VAL\n")
    with pytest.raises(InputError, match="a header and no days"):
        load_wind(tmp_path)


def test_bytes_that_are_no_text_are_named_by_line(tmp_path):
    (tmp_path / "houses.csv").write_bytes(b"longitude,latitude,median_house_value\n1,2,3\n1,\xff,3\n")
    with pytest.raises(InputError, match=r"houses\.csv line 3 is not utf-8 text"):
        load_california(tmp_path)


def test_too_short_an_order_and_an_unknown_station_are_errors(tmp_path):
    (tmp_path / "houses.csv").write_text("longitude,latitude,median_house_value\n1,2,3\n4,5,6\n")
    (tmp_path / "permutation.csv").write_text("row\n1\n")
    with pytest.raises(InputError, match="orders 1 rows, but the data have 2"):
        load_california(tmp_path)
    (tmp_path / "wind.csv").write_text("year,month,day,XYZ\n1961,1,1,3.5\n")
    with pytest.raises(InputError, match="has the station XYZ"):
        load_wind(tmp_path)


# The publishers' own formats


def cal_housing(data_dir: Path) -> bytes:
    """houses.csv in the format of scikit-learn's mirror; the six columns in between are made up."""
    rows = [line.split(",") for line in (data_dir / "california/houses.csv").read_text().split()[1:]]
    lines = [
        f"{float(x):.6f},{float(y):.6f},41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,{float(v):.6f}\n"
        for x, y, v in rows
    ]
    return "".join(lines).encode()


def cadata(data_dir: Path) -> bytes:
    """houses.csv in the format of StatLib, with a preamble in prose."""
    rows = [line.split(",") for line in (data_dir / "california/houses.csv").read_text().split()[1:]]
    preamble = (
        "S&P Letters Data\r\n\r\nWe collected information on the variables from the 1990 Census.\r\n1 2 3\r\n\r\n"
    )
    lines = [
        f" {float(v):.16e} 8.3252e+000 4.1e+001 8.8e+002 1.29e+002 3.22e+002 1.26e+002 {float(y):.16e} {float(x):.16e}"
        for x, y, v in rows
    ]
    return (preamble + "\r\n".join(lines) + "\r\n").encode()


def wind_data(data_dir: Path) -> bytes:
    """wind.csv in the format of StatLib: years of two digits, columns of fixed width."""
    rows = [line.split(",") for line in (data_dir / "wind/wind.csv").read_text().split()[1:]]
    lines = [
        f"{int(y) - 1900:2d}{int(m):3d}{int(d):3d}" + "".join(f"{float(speed):6.2f}" for speed in speeds) + "\n"
        for y, m, d, *speeds in rows
    ]
    return "".join(lines).encode()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def movielens_members(data_dir: Path) -> dict[str, bytes]:
    return {f"ml-100k/{path.name}": path.read_bytes() for path in sorted((data_dir / "ml-100k").iterdir())}


@pytest.fixture(scope="session")
def archives(data_dir) -> dict[str, bytes]:
    """What the publishers' servers give: path -> content."""
    return {
        "/ml-100k.zip": zipped(movielens_members(data_dir)),
        "/cal_housing.tgz": tarred({"CaliforniaHousing/cal_housing.data": cal_housing(data_dir)}),
        "/houses.zip": zipped({"houses.txt": b"about", "cadata.txt": cadata(data_dir)}),
        "/wind.data": wind_data(data_dir),
    }


def test_the_rebuilt_wind_file_is_as_long_as_the_published_one(archives):
    assert len(archives["/wind.data"]) == 532_494


@pytest.mark.parametrize("form", ["cal_housing.data", "CaliforniaHousing/cal_housing.data", "california/cadata.txt"])
def test_california_reads_the_publishers_files(data_dir, tmp_path, form):
    path = tmp_path / form
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(cadata(data_dir) if form.endswith("txt") else cal_housing(data_dir))
    ours, theirs = load_california(data_dir).table, load_california(tmp_path).table
    for column in ours.columns:
        np.testing.assert_array_equal(theirs[column], ours[column])
    assert theirs.row_label(0) == ("line 6" if form.endswith("txt") else "line 1")


def test_a_malformed_line_after_the_preamble_is_named(tmp_path):
    good = " ".join("1" * 9)
    (tmp_path / "cadata.txt").write_text(f"prose\n{good}\n1 2 3\n")
    with pytest.raises(InputError, match=r"cadata\.txt line 3 has 3 fields instead of 9"):
        load_california(tmp_path)
    (tmp_path / "cadata.txt").write_text("prose\nand prose\n")
    with pytest.raises(InputError, match="no line of 9 numbers"):
        load_california(tmp_path)


def test_wind_reads_the_publishers_file(data_dir, tmp_path, archives):
    (tmp_path / "wind.data").write_bytes(archives["/wind.data"])
    ours, theirs = load_wind(data_dir).values, load_wind(tmp_path).values
    for column in ours.columns:
        np.testing.assert_array_equal(theirs[column], ours[column])


# Downloads, from a server of our own


class Server:
    """Serves what `pages` holds: path -> (status, content, length that it declares, seconds that it waits)."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, bytes, int, float]] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                status, content, length, wait = outer.pages.get(self.path, (404, b"", 0, 0.0))
                time.sleep(wait)
                self.send_response(status)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}{path}"

    def give(self, path: str, content: bytes, *, status: int = 200, more: int = 0, wait: float = 0.0) -> None:
        self.pages[path] = (status, content, len(content) + more, wait)

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(5)


PATHS = {"ml-100k": ["/ml-100k.zip"], "california": ["/cal_housing.tgz", "/houses.zip"], "wind": ["/wind.data"]}


@pytest.fixture
def server(archives, cache, monkeypatch):
    """All publishers on this machine, with the checksums of the archives that the tests have built."""
    running = Server()
    for path, content in archives.items():
        running.give(path, content)
    for name, paths in PATHS.items():
        collection = MODULES[name].COLLECTION
        sources = tuple(
            dataclasses.replace(source, url=running.url(path), sha256=source.sha256 and sha256(archives[path]))
            for source, path in zip(collection.sources, paths, strict=True)
        )
        monkeypatch.setattr(MODULES[name], "COLLECTION", dataclasses.replace(collection, sources=sources))
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield running
    running.close()


def cached_files(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def assert_refused(name: str, cache: Path, *words: str) -> None:
    """The load fails in two sentences, one with the words and one with the remedy, and leaves nothing behind."""
    with pytest.raises(InputError) as caught:
        LOADERS[name]()
    what, remedy = str(caught.value).split(". Download it by hand")
    for word in words:
        assert word in what
    assert "TUCKERGP_DATA" in remedy
    assert str(cache / name) in remedy
    assert "\n" not in str(caught.value)
    assert cached_files(cache) == []
    assert not list(cache.glob("*/.download-*"))


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ml-100k", ["u.data", "u.item", "u.user", *(f"u{k}.{p}" for k in range(1, 6) for p in ("base", "test"))]),
        ("california", ["houses.csv"]),
        ("wind", ["wind.csv"]),
    ],
)
def test_a_download_gives_the_same_data_and_happens_once(server, cache, data_dir, name, kept):
    LOADERS[name]()
    assert cached_files(cache) == sorted(f"{name}/{file}" for file in kept)
    for file in kept:
        assert (cache / name / file).read_bytes() == (data_dir / name / file).read_bytes()
    LOADERS[name]()
    LOADERS[name](download=False)
    assert server.asked == PATHS[name][:1]


def test_a_downloaded_movielens_has_its_splits(server):
    train, test = load_movielens_100k().split(5)
    assert (len(train), len(test)) == (80_000, 20_000)


def test_california_falls_back_on_the_second_source(server, cache):
    server.give("/cal_housing.tgz", b"forbidden", status=403)
    assert len(load_california().table) == 20_640
    assert server.asked == PATHS["california"]


def test_both_sources_are_named_when_both_fail(server, cache):
    server.give("/cal_housing.tgz", b"", status=403)
    server.give("/houses.zip", b"", status=500)
    urls = [server.url(path) for path in PATHS["california"]]
    assert_refused("california", cache, f"{urls[0]} (it answered HTTP 403) nor from {urls[1]} (it answered HTTP 500)")


@pytest.mark.parametrize("name", ["ml-100k", "wind"])
def test_a_transfer_that_breaks_off_leaves_nothing(server, cache, archives, name):
    path = PATHS[name][0]
    server.give(path, archives[path][:100_000], more=50_000)
    assert_refused(name, cache, server.url(path), "broke off")


@pytest.mark.parametrize(
    ("name", "words"), [("ml-100k", "checksum is not the expected"), ("wind", "wind.csv is not the expected one")]
)
def test_a_file_that_is_short_on_the_server_leaves_nothing(server, cache, archives, name, words):
    path = PATHS[name][0]
    # the wind file ends with a whole line, so that only the checksum can tell
    server.give(path, archives[path][: 81 * 1_000])
    assert_refused(name, cache, server.url(path), words)


def test_a_changed_archive_is_refused(server, cache, archives, data_dir):
    server.give("/ml-100k.zip", zipped({**movielens_members(data_dir), "ml-100k/u.data": b"1\t1\t5\t1\n"}))
    assert_refused("ml-100k", cache, "checksum")


def test_changed_content_is_refused_without_a_checksum_of_the_archive(server, cache, archives):
    server.give("/cal_housing.tgz", b"", status=404)
    server.give("/houses.zip", zipped({"cadata.txt": b"1 2 3 4 5 6 7 8 9\n"}))
    assert_refused("california", cache, "HTTP 404", "houses.csv is not the expected one")


@pytest.mark.parametrize("content", [b"<html>moved</html>", b"", b"61 1 1 3.5\n", b"\xff\xfe"])
def test_a_page_that_is_no_data_is_refused(server, cache, content):
    server.give("/wind.data", content)
    assert_refused("wind", cache, "content is not the expected one")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>moved</html>", "not a whole archive"),
        (zipped({"other.txt": b"1"}), "holds no houses.csv"),
        (zipped({"cadata.txt": b"prose"}), "content is not the expected one"),
    ],
)
def test_an_archive_that_is_none_is_refused(server, cache, content, words):
    server.give("/cal_housing.tgz", b"", status=404)
    server.give("/houses.zip", content)
    assert_refused("california", cache, words)


def test_a_server_that_is_gone_is_named(server, cache):
    server.close()
    assert_refused("ml-100k", cache, server.url("/ml-100k.zip"), "no connection")


def test_a_server_that_does_not_answer_is_left_after_a_while(server, cache, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.give("/wind.data", b"", wait=1.0)
    assert_refused("wind", cache, "no answer within 0.2 seconds")


def trust(server: Server, monkeypatch, name: str, path: str, content: bytes) -> None:
    """Serve an archive and take its checksum for the published one."""
    server.give(path, content)
    collection = MODULES[name].COLLECTION
    first = dataclasses.replace(collection.sources[0], sha256=sha256(content))
    sources = (first, *collection.sources[1:])
    monkeypatch.setattr(MODULES[name], "COLLECTION", dataclasses.replace(collection, sources=sources))


def test_paths_that_lead_out_of_the_archive_are_ignored(server, cache, data_dir, tmp_path, monkeypatch):
    hostile = {
        "../escaped": b"x",
        "ml-100k/../../escaped": b"x",
        str(tmp_path / "escaped"): b"x",
        "ml-100k/extra": b"x",
    }
    trust(server, monkeypatch, "ml-100k", "/ml-100k.zip", zipped({**hostile, **movielens_members(data_dir)}))
    assert len(load_movielens_100k().ratings) == 100_000
    assert len(cached_files(cache)) == 13
    assert not list(tmp_path.rglob("escaped"))
    assert not (cache / "ml-100k/extra").exists()


def test_a_member_that_only_ends_like_a_wanted_one_is_not_taken(server, cache, data_dir, monkeypatch):
    members = {f"../{name}": content for name, content in movielens_members(data_dir).items()}
    trust(server, monkeypatch, "ml-100k", "/ml-100k.zip", zipped(members))
    assert_refused("ml-100k", cache, "holds no u.data")


def test_a_link_in_a_tar_archive_is_not_followed(server, cache, monkeypatch):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    trust(server, monkeypatch, "california", "/cal_housing.tgz", buffer.getvalue())
    server.give("/houses.zip", b"", status=404)
    assert_refused("california", cache, "holds no houses.csv")


def test_a_damaged_cache_is_filled_again(server, cache, data_dir):
    load_wind()
    with (cache / "wind/wind.csv").open("a") as file:
        file.write("1979,1,1\n")
    with pytest.raises(InputError, match="nor whole in the cache"):
        load_wind(download=False)
    assert len(load_wind().values) == 78_888
    assert server.asked == ["/wind.data"] * 2


@pytest.mark.parametrize("name", ["u1.base", "u3.test", "u.item"])
def test_a_cached_file_that_was_cut_at_a_line_is_fetched_again(name, server, cache):
    load_movielens_100k()
    path = cache / "ml-100k" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", len(whole) // 3) + 1])
    with pytest.raises(InputError, match="nor whole in the cache"):
        load_movielens_100k(download=False)
    load_movielens_100k()
    assert path.read_bytes() == whole
    assert server.asked == ["/ml-100k.zip"] * 2


def test_all_files_of_the_cache_have_a_checksum():
    for module in MODULES.values():
        assert all(re.fullmatch("[0-9a-f]{64}", known) for known in module.COLLECTION.cached.values())
        assert set(module.COLLECTION.forms[0]) <= module.COLLECTION.cached.keys()


def test_a_split_that_lacks_ratings_is_refused(movielens, data_dir, tmp_path):
    for name in ("u.data", "u.user", "u.item", "u1.test"):
        shutil.copyfile(data_dir / "ml-100k" / name, tmp_path / name)
    lines = (data_dir / "ml-100k/u1.base").read_bytes().splitlines(keepends=True)
    (tmp_path / "u1.base").write_bytes(b"".join(lines[:25_450]))
    with pytest.raises(
        InputError, match=r"u1\.base and u1\.test have 25,450 and 20,000 ratings, together not the 100,000"
    ):
        load_movielens_100k(tmp_path).split(1)


def test_an_incomplete_cache_is_filled_again(server, cache):
    load_movielens_100k()
    (cache / "ml-100k/u3.test").unlink()
    load_movielens_100k().split(3)
    assert server.asked == ["/ml-100k.zip"] * 2


def test_a_failed_refill_keeps_the_files_that_were_there(server, cache):
    load_movielens_100k()
    (cache / "ml-100k/u3.test").unlink()
    server.give("/ml-100k.zip", b"", status=503)
    with pytest.raises(InputError, match="HTTP 503"):
        load_movielens_100k()
    assert len(cached_files(cache)) == 12


def test_the_publishers_file_put_into_the_cache_by_hand_is_read(server, cache, archives):
    (cache / "wind").mkdir(parents=True)
    (cache / "wind/wind.data").write_bytes(archives["/wind.data"])
    assert len(load_wind().values) == 78_888
    assert server.asked == []


@pytest.mark.parametrize("keep", [0.3, 0.99])
def test_the_publishers_file_put_into_the_cache_is_checked_too(keep, server, cache, archives):
    content = archives["/wind.data"]
    (cache / "wind").mkdir(parents=True)
    (cache / "wind/wind.data").write_bytes(content[: content.index(b"\n", int(keep * len(content))) + 1])
    with pytest.raises(InputError, match="nor whole in the cache"):
        load_wind(download=False)
    assert len(load_wind().values) == 78_888
    assert server.asked == ["/wind.data"]


def test_the_environment_comes_before_the_cache_and_may_lack_a_data_set(server, cache, data_dir, tmp_path, monkeypatch):
    only_wind = tmp_path / "data"
    (only_wind / "wind").mkdir(parents=True)
    (only_wind / "wind/wind.csv").write_text("year,month,day,VAL\n1961,1,1,3.5\n")
    monkeypatch.setenv("TUCKERGP_DATA", str(only_wind))
    assert len(load_wind().values) == 1
    assert len(load_california().table) == 20_640
    assert server.asked == ["/cal_housing.tgz"]


def test_a_cache_that_is_a_file_is_named(server, cache):
    cache.write_text("not a folder")
    with pytest.raises(InputError, match=r"The cache .* cannot be written: .* Set TUCKERGP_CACHE"):
        load_wind()


# The progress bar


def test_the_bar_is_drawn_on_a_terminal_only(server, cache, monkeypatch, capsys):
    load_wind()
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    shutil.rmtree(cache)
    screen = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    load_wind()
    assert "Irish wind" in screen.getvalue()
    assert "532.5/532.5 kB" in screen.getvalue()


def test_the_bar_knows_what_pooch_calls(capsys):
    screen = io.StringIO()
    bar = download.RichBar("Something", Console(file=screen, force_terminal=True, width=100))
    bar.total = 0
    assert bar.total == 0
    bar.update(100)
    bar.total = 2_000
    bar.update(100)
    bar.reset()
    bar.update(2_000)
    bar.close()
    bar.close()
    assert "2.0/2.0 kB" in screen.getvalue()


# The examples


@pytest.mark.parametrize("name", MODULES)
def test_the_skipped_examples_of_the_loaders_run_where_the_data_are(name, data_dir, monkeypatch):
    monkeypatch.setenv("TUCKERGP_DATA", str(data_dir))
    found = [test for test in doctest.DocTestFinder().find(MODULES[name]) if test.examples]
    assert found
    for test in found:
        for example in test.examples:
            example.options.pop(doctest.SKIP, None)
        assert doctest.DocTestRunner().run(test).failed == 0
