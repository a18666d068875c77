"""Tables of the benchmarks as rows, the first of them the head, from their results files and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from statistics import mean, median, stdev
from typing import Any

Report = dict[str, Any]
Rows = list[list[str]]

PROGRAMS = {
    "ours": "ours",
    "ours, float32": "ours, float32",
    "clicks, ALS": "clicks, ALS",
    "clicks, Gibbs": "clicks, Gibbs sampling",
    "myfm": "myFM",
    "implicit": "implicit",
    "cmfrec": "cmfrec",
}
PEERS = ("myfm", "implicit", "cmfrec")
SAMPLERS = {"gibbs": "Gibbs sampling", "nuts": "NUTS", "stan": "NUTS by Stan"}
PASSES = {
    "gradient": "gradient of the log joint",
    "rows of one mode": "statistics of the rows of a mode",
    "core": "draw of the core",
    "learned core": "draw of a learned pattern",
    "sweep": "Gibbs sweep",
}


def _programs(report: Report) -> dict[str, str]:
    """Those that were run, and what they are called."""
    return {
        name: shown for name, shown in PROGRAMS.items() if any(name in found for found in report["results"].values())
    }


def gibbs_times(report: Report) -> Rows:
    """Seconds of a sweep, wall time."""
    programs = _programs(report)
    rows = [["seconds for a sweep, wall", *programs.values()]]
    for title, found in report["results"].items():
        times = [f"{found[name]['wall_seconds']:.3g}" if name in found else "" for name in programs]
        rows.append([title.replace(" | ", ", "), *times])
    return rows


def gibbs_ratios(report: Report) -> Rows:
    """Our time by that of every peer in the same run, wall and CPU."""
    programs = _programs(report)
    peers = {name: shown for name, shown in programs.items() if name in PEERS}
    rows = [["ours / it: wall, CPU", "", *peers.values()]]
    for title, found in report["results"].items():
        for ours in (name for name in programs if name not in peers and name in found):
            key = ours.replace(", ", "_").lower() + "_by_this"
            by = [
                f"{found[name][f'{key}_wall']:.2f}, {found[name][f'{key}_cpu']:.2f}" if name in found else ""
                for name in peers
            ]
            rows.append([title.replace(" | ", ", "), programs[ours], *by])
    return rows


def gibbs_memory(report: Report) -> Rows:
    """By how much memory grew since the data were there."""
    programs = {name: shown for name, shown in _programs(report).items() if name not in PEERS}
    rows = [["MB of memory grown", *programs.values()]]
    for title, found in report["results"].items():
        grown = [f"{found[name]['growth_bytes'] / 1e6:,.0f}" if name in found else "" for name in programs]
        rows.append([title.replace(" | ", ", "), *grown])
    return rows


def gibbs_costs(report: Report) -> Rows:
    """Memory of sweeps, and seconds of a first fit."""
    rows = [["", "measured"]]
    for title, found in report["results"].items():
        if title.startswith("synthetic"):
            ratio = 2 * found["ours"]["growth_bytes"] / found["ours"]["bound_bytes"]
            rank = title.rsplit(" ", 1)[1]
            rows.append([f"synthetic, rank {rank}: memory grown / (ratings and factors)", f"{ratio:.2f}"])
    for name, shown in (("cold", "nothing compiled"), ("warm", "from numba's cache")):
        if name in report["first_fit_seconds"]:
            seconds = report["first_fit_seconds"][name]
            rows.append([f"first fit, {shown}: seconds, wall", f"{seconds['fit, wall']:.2f}"])
            rows.append([f"first fit, {shown}: seconds, CPU", f"{seconds['fit, cpu']:.2f}"])
    return rows


def gibbs_paths(report: Report) -> Rows:
    """CPU time of a sweep of every kind, by that of plain ratings in the same round."""
    ((title, found),) = report["results"].items()
    rows = [[f"{title.replace(' | ', ', ')}, commit {report['commit']}", "CPU s for a sweep", "times plain"]]
    for name, row in found.items():
        times = _paired(row, found["ours"])
        rows.append(["plain ratings" if name == "ours" else name, f"{row['cpu_seconds']:.3f}", f"{times:.2f}"])
    return rows


def gibbs_corating(report: Report) -> Rows:
    """CPU time of who rated what, now and at an earlier commit."""
    rows = [["data", "", "commit", "CPU s once", "CPU s for a sweep", "now / it"]]
    for title, found in report["results"].items():
        for name, commit in (("co-rating", "commit"), ("co-rating, earlier", "earlier_commit")):
            times = [f"{found[name][key]:.3g}" for key in ("once_cpu_seconds", "cpu_seconds")]
            ratio = f"{_paired(found['co-rating'], found[name]):.2f}"
            rows.append([title.replace(" | ", ", "), name, report[commit], *times, ratio])
    return rows


def _paired(row: Report, other: Report) -> float:
    """The median ratio of CPU times in the same round."""
    rounds = zip(row["rounds"], other["rounds"], strict=True)
    return median(ours["cpu"] / its["cpu"] for ours, its in rounds)


def value_times(report: Report) -> Rows:
    """CPU time of fits with and without what people choose."""
    rows = [[f"CPU s of a fit, commit {report['commit']}", "ratings alone", "by value", "times"]]
    cells = report["cpu_seconds"]
    for seed, found in cells.items():
        alone, value = found["rating"], found["value"]
        rows.append([f"seed {seed}", f"{alone:.1f}", f"{value:.1f}", f"{value / alone:.2f}"])
    ratio = median(found["value"] / found["rating"] for found in cells.values())
    return [*rows, ["median", "", "", f"{ratio:.2f}"]]


def gibbs_peak(report: Report) -> Rows:
    """Speed of the statistics of rows beside that of matrix products."""
    (found,) = (rows["statistics"] for rows in report["results"].values() if "statistics" in rows)
    rate, single, double = (found[f"{name}_gigaflops"] for name in ("statistics", "sgemm", "dgemm"))
    return [
        ["Gflop/s, rank 64, 2 threads", "", "share reached"],
        ["statistics of rows", f"{rate:.1f}", ""],
        ["float32 matrix product", f"{single:.1f}", f"{rate / single:.0%}"],
        ["float64 matrix product", f"{double:.1f}", f"{rate / double:.0%}"],
    ]


def recommend_times(report: Report) -> Rows:
    """Seconds to recommend to all users, and ratios."""
    names = {"ours": "ours", "implicit": "implicit", "product": "the product alone, at full width"}
    rows = [["best 10 of all users", "wall s", "CPU s", "ours / it, wall", "ours / it, CPU", "memory grown, GiB"]]
    for name, found in report["results"].items():
        by = [f"{found[key]:.2f}" if key in found else "" for key in ("ours_by_this_wall", "ours_by_this_cpu")]
        grown = f"{found['growth_bytes'] / 2**30:.2f}" if found.get("growth_bytes") else ""
        rows.append([names[name], f"{found['wall_seconds']:.1f}", f"{found['cpu_seconds']:.1f}", *by, grown])
    return rows


def recommend_memory(report: Report) -> Rows:
    """Memory of learning."""
    peak = max(value for name, value in report["fitting"].items() if name.startswith("peak") and value)
    what = "20 million ratings from Parquet to a model of 30 sweeps"
    return [["", "memory at the peak, GiB"], [what, f"{peak / 2**30:.2f}"]]


def nuts_rates(report: Report) -> Rows:
    """Effective draws for a second, and ratios to Stan."""
    rows = [["features in each mode", "", "draws kept", "worst R-hat", "leapfrogs for a draw"]]
    rows[0] += ["effective draws for a CPU second, median (least)", "times Stan's, median (least)"]
    rows[0].append("times Stan's within chains")
    for title, found in report["results"].items():
        for name, row in found.items():
            start = [title.split()[0], SAMPLERS[name]]
            if "missing" in row:
                rows.append([*start, f"not run: {row['missing']}", *[""] * 5])
                continue
            rate = f"{row['ess_median_a_cpu_second']:.3g} ({row['ess_min_a_cpu_second']:.2g})"
            leapfrogs = f"{row['leapfrogs']:.0f}" if "leapfrogs" in row else ""
            by = row.get("by_stan")
            ratio = f"{by['ess_median_a_cpu_second']:.3g} ({by['ess_min_a_cpu_second']:.3g})" if by else ""
            within = f"{by['ess_within_a_cpu_second']:.3g}" if by else ""
            rows.append([*start, f"{row['kept_draws']:,}", f"{row['rhat']:.2f}", leapfrogs, rate, ratio, within])
    return rows


def regression_scaling(report: Report) -> Rows:
    """Seconds and memory by the number of observations, ours and the exact GP's."""
    rows = [["observations", "seconds for a sweep", "seconds to set up", "memory added", "RMSE of f after 10 draws"]]
    rows[0] += ["exact GP (scikit-learn): seconds", "memory added"]
    cells = report["cells"]
    for n in sorted({*map(int, cells["ours"]), *map(int, cells["peer"])}):
        ours, peer = (cells[name].get(str(n)) for name in ("ours", "peer"))
        row = [f"{n:,}", *[""] * 6]
        if ours:
            seconds = [f"{ours['sweep_seconds']:.2f}", f"{ours['set_up_seconds']:.1f}"]
            row[1:5] = [*seconds, _memory(ours), f"{ours['rmse']:.3f}"]
        if peer:
            row[5:] = [f"{peer['total_seconds']:.1f}", _memory(peer)]
        rows.append(row)
    return rows


def regression_default(report: Report) -> Rows:
    """What a fit with the defaults costs by the number of rows."""
    rows = [["rows", "chosen", "sweeps", "CPU seconds of a sweep", "CPU seconds in all", "memory added", "RMSE of f"]]
    for n, cell in report["cells"]["default"].items():
        seconds = [f"{cell['sweep_cpu_seconds']:.2f}", f"{cell['total_cpu_seconds']:.0f}"]
        rows.append(
            [f"{int(n):,}", cell["chosen"], str(cell["sweeps"]), *seconds, _memory(cell), f"{cell['rmse']:.3f}"]
        )
    return rows


def _memory(cell: Report) -> str:
    return f"{cell['grown_bytes'] / 1e6:,.0f} MB"


def sparse_core_times(part: Report, letter: str) -> Rows:
    """Microseconds for an observation, by the number of entries Q or of modes D."""
    cells = part["microseconds"]
    sizes = [f"{letter} = {int(size):,}" for size in cells]
    rows = [["CPU microseconds for an observation", *sizes, f"slope from {letter} = {part['slopes_from']} on"]]
    for name, title in PASSES.items():
        times = [f"{cell[name]:.2g}" if cell[name] < 10 else f"{cell[name]:.0f}" for cell in cells.values()]
        rows.append([title, *times, f"{part['slopes'][name]:.2f}"])
    return rows


def sparse_core_large(report: Report) -> Rows:
    """A core that could not be full."""
    row = report["large"]
    sparse = [row["entries"], row["sparse_bytes_of_a_draw"], 8 * row["entries"] ** 2]
    full = [row["full_entries"], row["full_bytes_of_a_draw"], row["full_bytes_of_the_normal_matrix"]]
    seconds = f"CPU seconds for a sweep, {row['observations']:,} observations"
    return [
        [f"D = {row['modes']}, r = {row['rank']}", "entries", "bytes of a draw of W", "bytes of its system", seconds],
        ["sparse", *(f"{number:,}" for number in sparse), f"{row['cpu_seconds_a_sweep']:.3f}"],
        ["full", *(f"{number:,}" for number in full), ""],
    ]


ANSWERS = {
    "pair": "one pair",
    "pair_with_std": "one pair with standard deviation",
    "list": "one list of 10",
    "bare_list": "a matrix-vector product and a partial sort of that size",
    "explain": "one explanation",
    "fold_in": "one fold-in of 5 ratings",
    "bare_solves": "one r x r solve for each draw",
}


def latency_answers(report: Report) -> Rows:
    """Milliseconds of single answers by the number of users, median and 99th percentile."""
    sizes = report["users"]
    rows = [["ms, median (99th percentile)", *(f"{int(users):,} users" for users in sizes)]]
    for name, title in ANSWERS.items():
        times = [f"{size[name]['p50']:.2f} ({size[name]['p99']:.2f})" for size in sizes.values()]
        rows.append([title, *times])
    return rows


def latency_ratios(report: Report) -> Rows:
    """The time of answers divided by that of their bare arithmetic."""
    sizes = report["users"]
    titles = {
        "list": "a list / its product",
        "fold_in": "a fold-in / its solves",
        "everyone": "lists of all / products",
    }
    rows = [["ratio", *(f"{int(users):,} users" for users in sizes)]]
    return rows + [
        [title, *(f"{size['ratios'][name]:.2f}" for size in sizes.values())] for name, title in titles.items()
    ]


def serve_load(report: Report) -> Rows:
    """Lists per second and latencies of a server under load, beside a bare endpoint."""
    size, titles = report["size"], {"bare": "a bare endpoint: product and partial sort", "served": "`tuckergp serve`"}
    rows = [[f"{size['items']:,} items, {size['draws']} draws of rank {size['rank']}, {report['workers']} workers",
             "lists per second", "ms, median", "ms, 99th percentile", "failed"]]  # fmt: skip
    for name, title in titles.items():
        cell = report[name]
        rows.append([title, *(f"{cell[key]:.1f}" for key in ("per_second", "p50", "p99")), str(cell["failed"])])
    ratios = report["ratios"]
    return [*rows, ["ratio", "", f"{ratios['p50']:.2f}", f"{ratios['p99']:.2f}", ""]]


def if_run(name: str, table: Callable[[Report], Rows]) -> Callable[[Report], Rows]:
    """A table of a part of a report, or of one row where the stored run was without it."""
    return lambda report: table(report) if name in report else [["not part of the stored run"], ["run it"]]


def serve_memory(report: Report) -> Rows:
    """What each worker of a server has of its own and what it shares, and what a user who is folded in takes."""
    rows = [["MB per worker", "its own", "shared", "both workers, shared pages counted once"]]
    for name, title in (("started", "when it has started"), ("memory", "after some thousand lists")):
        workers = report[name]
        own, shared = (max(worker[key] for worker in workers) / 1e6 for key in ("private", "shared"))
        rows.append([title, f"{own:,.0f}", f"{shared:,.0f}", f"{_proportional(workers):,.0f}"])
    return [*rows, ["each user who is folded in", f"{report['bytes_per_user'] / 1e6:.4f}", "", ""]]


def _proportional(workers: Report) -> float:
    """MB of all workers together, with a page that several have counted once."""
    return sum(worker["proportional"] for worker in workers) / 1e6


def serve_sustained(report: Report) -> Rows:
    """Rate, latencies, failures and memory of a server under load for a long time, beside the worst minute."""
    found = report["sustained"]
    pieces = found["pieces"]
    asked = f"{found['rate']:.1f} per second, due at fixed times"
    rows = [["", asked, "worst minute"]]
    done = sum(piece["requests"] for piece in pieces)
    rows.append(["answered per second", f"{done / sum(piece['took'] for piece in pieces):.1f}",
                 f"{min(piece['per_second'] for piece in pieces):.1f}"])  # fmt: skip
    for title, key in (("ms, median", "p50"), ("ms, 99th percentile", "p99")):
        rows.append([title, f"{found['all'][key]:.1f}", f"{max(piece[key] or 0 for piece in pieces):.1f}"])
    rows.append(["ms of ratings, median", f"{found['fold_ins']['p50']:.1f}", ""])
    behind = sum(piece["behind"] for piece in pieces)
    rows.append(["minutes below 95 % of the rate", f"{behind} of {len(pieces)}", ""])
    failed = sum(piece["failed"] for piece in pieces)
    rows.append(["answers; failed; not sent in time", f"{done:,}; {failed}; {found['unsent']}", ""])
    for title, key in (("MB of a worker's own", "private"), ("MB shared", "shared")):
        held = [max(worker[key] for worker in pieces[k]["memory"]) / 1e6 for k in (min(1, len(pieces) - 1), -1)]
        rows.append([f"{title}, after 2 minutes and at the end", f"{held[0]:,.0f}; {held[1]:,.0f}", ""])
    return rows


def kept_draws(report: Report) -> Rows:
    """Error, coverage and size with some of the draws, means over seeds."""
    rows = [["draws kept", "test RMSE", "coverage of 90 % intervals", "MB"]]
    for count, seeds in report["kept"].items():
        means = {key: sum(seed[key] for seed in seeds.values()) / len(seeds) for key in next(iter(seeds.values()))}
        rows.append([count, f"{means['rmse']:.4f}", f"{means['coverage']:.3f}", f"{means['megabytes']:.0f}"])
    return rows


def gaps(report: Report) -> Rows:
    """Coverage of f by 90 % intervals, by features and place."""
    places = list(next(iter(report["coverage"].values())))
    rows = [["features", *places]]
    return rows + [[name, *(f"{row[place]:.2f}" for place in places)] for name, row in report["coverage"].items()]


def mutants(report: Report) -> Rows:
    """Faults that the tests noticed, by folder, and those that they did not, with the reason where there is one."""
    folders: dict[str, list[tuple[str, Report]]] = {}
    for name, found in sorted(report["mutants"].items()):
        folders.setdefault(f"`{found['file'].split('/')[0]}`", []).append((name, found))
    rows = [["folder", "faults", "noticed", "not noticed", "which, and why"]]
    run = f"all that were run, of {report['listed']} in the list"
    for title, entries in [*folders.items(), (run, list(report["mutants"].items()))]:
        missed = [(name, found) for name, found in entries if found["outcome"] != "noticed"]
        noticed = len(entries) - len(missed)
        why = [f"{name}: {found['equivalent'] or found['outcome']}" for name, found in missed if title != run]
        share = f"{noticed} ({noticed / len(entries):.0%})" if title == run else str(noticed)
        rows.append([title, str(len(entries)), share, str(len(missed)), "; ".join(why)])
    return rows


def prior_f(report: Report) -> Rows:
    """The prior of f at scale 1: its standard deviation from the residuals alone, medians of |f|."""
    columns = ("residuals alone", "a constant", "a constant and a feature block")
    head = ["core", "modes", "rank", "sd of f, residuals alone", "median of abs f, residuals alone"]
    rows = [[*head, *(f"with {name} in each mode" for name in columns[1:])]]
    for case in report["cases"]:
        medians = [f"{case[name]:.2f}" for name in columns]
        rows.append([case["core"], str(case["modes"]), str(case["rank"]), f"{case['sd']:.2f}", *medians])
    return rows


def _prior_scale(report: Report, figure: str, best: Callable[..., float], base: str = "0.25") -> Rows:
    """A figure less that of the base scale, over splits and seeds that both have, with its standard error.

    The number of splits and seeds is in brackets, the best of the row in bold.
    """
    scales = sorted({scale for found in report["results"].values() for scale in found}, key=float)
    rows = [["held-out training ratings", f"mean at {base}", *(scale for scale in scales if scale != base)]]
    for title, found in report["results"].items():
        here = found.get(base, {})
        less = {
            scale: [cell[figure] - here[name][figure] for name, cell in cells.items() if name in here]
            for scale, cells in found.items()
        }
        means = {scale: mean(values) for scale, values in less.items() if values}
        chosen = best(means, key=means.__getitem__) if means else ""
        words = [_difference(less.get(scale, []), scale == chosen) for scale in scales if scale != base]
        if any(words):
            at_base = f"{mean(cell[figure] for cell in here.values()):.4f}"
            rows.append(
                [title.replace("who rated what", "co-rating"), f"**{at_base}**" if chosen == base else at_base, *words]
            )
    return rows


def _difference(values: list[float], bold: bool) -> str:
    """Mean, standard error and number of differences."""
    if not values:
        return ""
    error = f" ± {stdev(values) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""
    said = f"{mean(values):+.4f}{error}"
    return f"**{said}** ({len(values)})" if bold else f"{said} ({len(values)})"


def prior_scale_rmse(report: Report) -> Rows:
    """Errors on held-out training ratings by prior scale."""
    return _prior_scale(report, "rmse", min)


def prior_scale_density(report: Report) -> Rows:
    """Mean log densities of held-out training ratings by prior scale."""
    return _prior_scale(report, "log_density", max)


def mixing(report: Report) -> Rows:
    """R-hat of f and effective draws of it, without and with overrelaxation, means over seeds."""
    cells: dict[str, dict[str, list[Report]]] = {}
    for name, found in report["results"].items():
        data, share, _ = name.split(" | ")
        cells.setdefault(data, {}).setdefault(share, []).append(found)
    rows = [["without / with overrelaxation", "worst R-hat", "median", "least", "median a CPU second", "CPU seconds"]]
    shown = {"rhat": ".2f", "ess_median": ".0f", "ess_least": ".0f", "ess_median_a_cpu_second": ".2f"}
    for data, shares in cells.items():
        means = [
            {key: sum(found[key] for found in each) / len(each) for key in (*shown, "cpu_seconds")}
            for each in shares.values()
        ]
        rows.append([data, *(" / ".join(f"{mean[key]:{how}}" for mean in means) for key, how in shown.items())])
        rows[-1].append(" / ".join(f"{mean['cpu_seconds']:.0f}" for mean in means))
    return rows


def cold_start(report: Report) -> Rows:
    """Error and coverage of held-out users and items, means over splits, with the standard error of differences."""
    rows = [["held out", "attributes", "co-rating", "splits", "RMSE", "on less off", "coverage", "coverage of ids"]]
    splits = list(report["splits"].values())
    for key, title in (("user_id", "users"), ("item_id", "items")):
        for attributes in ("attributes", "no attributes"):
            on, off = ([split[f"{attributes}, who-rated-what {x}"][key] for split in splits] for x in ("on", "off"))
            less = [a["rmse"] - b["rmse"] for a, b in zip(on, off, strict=True)]
            error = stdev(less) / len(less) ** 0.5
            for name, scores, difference in (("on", on, f"{mean(less):.4f} ± {error:.4f}"), ("off", off, "")):
                means = {score: mean(one[score] for one in scores) for score in ("rmse", "coverage", "coverage_of_ids")}
                figures = [f"{means['rmse']:.4f}", difference, *(f"{means[x]:.3f}" for x in list(means)[1:])]
                rows.append([title, "yes" if attributes == "attributes" else "no", name, str(len(splits)), *figures])
    return rows


def diversity_lists(report: Report) -> Rows:
    """NDCG and similarity of genres without diversity, and how much they differ with it, means over splits."""
    weights = list(next(iter(next(iter(report["lists"].values())).values())))
    rows = [["diversity", *(f"{float(weight):g}" for weight in weights)]]
    for model, splits in report["lists"].items():
        for figure, title in (("ndcg", "NDCG@10"), ("similarity", "similarity of genres")):
            values = {weight: [found[weight][figure] for found in splits.values()] for weight in weights}
            base = values[weights[0]]
            cells = [f"{mean(base):.3f}"]
            for weight in weights[1:]:
                less = [there - here for there, here in zip(values[weight], base, strict=True)]
                error = stdev(less) / len(less) ** 0.5
                cells.append(f"{mean(less):+.3f} ± {error:.3f}")
            rows.append([f"{model}: {title}", *cells])
    return rows


def diversity_choice(report: Report) -> Rows:
    """NDCG and similarity of genres by the similarity of items that lists avoid."""
    weights = list(next(iter(next(iter(report["choice"].values())).values())))
    rows = [["NDCG@10 / similarity of genres, diversity", *(f"{float(weight):g}" for weight in weights)]]
    for model, kinds in report["choice"].items():
        for kind, found in kinds.items():
            cells = (f"{found[weight]['ndcg']:.3f} / {found[weight]['similarity']:.3f}" for weight in weights)
            rows.append([f"{model}: {kind}", *cells])
    return rows


LISTENERS = {
    "popularity": "popularity",
    "nearest items": "nearest items",
    "ease": "EASE",
    "implicit": "implicit, ALS",
    "ials": "ALS with a penalty scaled by frequency",
    "lightfm": "LightFM, chosen by known artists",
    "lightfm, cold": "LightFM, chosen by cold artists",
    "als, no attributes": "ours, ALS without attributes",
    "als": "ours, ALS",
    "gibbs, no attributes": "ours, Gibbs sampling without attributes",
    "gibbs": "ours, Gibbs sampling",
}


def lastfm_lists(report: Report) -> Rows:
    """Lists of artists, means over the seeds that are done, and of artists that nobody played in the training part.

    Columns are those that all cells have.
    """
    columns = {
        "warm_ndcg_10": "NDCG@10",
        "warm_recall_20": "recall@20",
        "warm_recall_50": "recall@50",
        "warm_ndcg_100": "NDCG@100",
        "cold_recall_50": "cold artists: recall@50",
        "cold_ndcg_100": "NDCG@100",
        "warm_coverage": "known artists: coverage",
        "warm_novelty": "novelty",
    }
    seeds = [cells for name, cells in report["cells"].items() if name.startswith("seed")]
    measured = [cell.keys() for cells in seeds for cell in cells.values()]
    columns = {name: title for name, title in columns.items() if all(name in names for names in measured)}
    rows = [["", "seeds", *columns.values(), "seconds for a fit"]]
    for name, title in LISTENERS.items():
        if done := [cells[name] for cells in seeds if name in cells]:
            figures = [f"{mean(cell[column] for cell in done):.4f}" for column in columns]
            seconds = f"{mean(cell['seconds'] for cell in done):.0f}" if "seconds" in done[0] else ""
            rows.append([title, str(len(done)), *figures, seconds])
    return rows


def lastfm_choice(report: Report) -> Rows:
    """The best settings of implicit on the validation part."""
    rows = [["settings of implicit, ALS with 32 factors", "validation NDCG@100"]]
    tried = report["cells"]["validation"].items()
    best = sorted(tried, key=lambda pair: -pair[1]["warm_ndcg_100"])[:3]
    return [*rows, *([f"`{name}`", f"{cell['warm_ndcg_100']:.4f}"] for name, cell in best)]


RANKED = {
    "oracle": "oracle",
    "oracle of attributes": "oracle that knows all but what is a new row's own",
    "random": "random order",
    "popularity": "popularity",
    "nearest rows": "nearest rows by attributes",
    "ridge": "ALS with a penalty scaled by frequency, ridge regression of factors on attributes",
    "lightfm": "LightFM (WARP, attributes)",
    "ease": "EASE",
    "implicit": "implicit, ALS",
    "ials": "ALS with a penalty scaled by frequency",
    "als": "ours, ALS",
    "gibbs": "ours, Gibbs sampling",
    "value": "ours, by value",
}


def cold_lists(report: Report, task: str) -> Rows:
    """Lists of one task: NDCG@10 by seed, and means over the seeds."""
    groups = {name: cells for name, cells in report["cells"][task].items() if name.startswith("seed")}
    columns = {"ndcg_10": "NDCG@10", "recall_50": "recall@50", "ndcg_100": "NDCG@100"}
    rows = [["", *(f"{name}: NDCG@10" for name in groups), *(f"mean {title}" for title in columns.values())]]
    rows[0].append("CPU seconds")
    names = {name for cells in groups.values() for name in cells}
    for name, title in RANKED.items():
        for full in sorted(each for each in names if each.split(", ")[0] == name):
            done = [cells[full] for cells in groups.values()]
            by_seed = [f"{cell['ndcg_10']:.4f}" for cell in done]
            means = [f"{mean(cell[column] for cell in done):.4f}" for column in columns]
            seconds = mean(cell["cpu_seconds"] for cell in done)
            rows.append([title + full.removeprefix(name), *by_seed, *means, f"{seconds:.1f}"])
    return rows


def cold_lists_choice(report: Report) -> Rows:
    """Settings of peers that are the best on the validation parts."""
    rows = [["lists", "contestant", "compared", "chosen", "its NDCG@10, mean of the parts", "the least, the median"]]
    rows[0][-1] += " on the first part"
    for task, groups in report["cells"].items():
        for name in RANKED:
            parts = [
                cells for group, cells in groups.items() if group.startswith("valid") and group.endswith(f", {name}")
            ]
            if parts:
                scores = {
                    options: mean(cells[options]["ndcg_10"] for cells in parts)
                    for options in parts[0]
                    if all(options in cells for cells in parts)
                }
                best = max(scores, key=lambda one: scores[one])
                first = [cell["ndcg_10"] for cell in parts[0].values()]
                least = f"{min(first):.4f}, {median(first):.4f}"
                rows.append([task, RANKED[name], str(len(first)), f"`{best}`", f"{scores[best]:.4f}", least])
    return rows


def field_neighbours(report: Report) -> Rows:
    """Error of the approximation by smoothness and number of neighbours."""
    cells = report["cells"]["neighbours"]
    counts = list(next(iter(cells.values())))
    rows = [["smoothness", *(f"{count} neighbours" for count in counts)]]
    for smoothness, found in cells.items():
        rows.append([smoothness, *(f"{found[count]['error']:.3f}" for count in counts)])
    times = [[found[count]["cpu_seconds"] for found in cells.values()] for count in counts]
    return [*rows, ["CPU seconds of a draw", *(f"{mean(some):.3f}" for some in times)]]


def field_order(report: Report) -> Rows:
    """Divergence of the approximation from the process by the order of places."""
    cells = report["cells"]["order"]
    orders = list(next(iter(next(iter(cells.values())).values())))
    rows = [["places", "smoothness", *(f"{order}, {noise}" for noise in ("without noise", "noise of a tenth")
                                       for order in orders)]]  # fmt: skip
    for where, by_smoothness in cells.items():
        for smoothness, found in by_smoothness.items():
            figures = [f"{found[order][noise]:.2f}" for noise in found[orders[0]] for order in orders]
            rows.append([where, smoothness, *figures])
    return rows


def field_around(report: Report) -> Rows:
    """Errors under clouds by the places that a prediction depends on."""
    cells = report["cells"]["around"]
    names = list(next(iter(cells.values())))
    rows = [["clouds turned", *names]]
    rows += [[clouds, *(f"{found[name]['rmse']:.3f}" for name in names)] for clouds, found in cells.items()]
    times = [mean(found[name]["cpu_seconds"] for found in cells.values()) for name in names]
    return [*rows, ["CPU seconds", *(f"{seconds:.1f}" for seconds in times)]]


def field_scores(report: Report, data: str) -> Rows:
    """Errors and coverage of fields on one data set, where choices were made and on the test part."""
    rows = [["scored on", "field", "RMSE", "MAE", "CRPS", "coverage of 50, 90, 95 %", "ESS of the lengthscale"]]
    rows[0].append("CPU minutes")
    for part, found in report["cells"][data].items():
        for name, cell in found.items():
            figures = [f"{cell[key]:.4f}" for key in ("rmse", "mae", "crps")]
            coverage = ", ".join(f"{share:.3f}" for share in cell["coverage"].values())
            minutes = (cell["fit_cpu_seconds"] + cell["predict_cpu_seconds"]) / 60
            rows.append([part, name, *figures, coverage, f"{cell['lengthscale_ess']:.0f}", f"{minutes:.1f}"])
    return rows


def field_size(report: Report) -> Rows:
    """Seconds and memory by the number of places."""
    rows = [["places", "CPU seconds of set-up and the first sweep", "of a sweep", "memory added", "RMSE of f"]]
    for n, cell in report["cells"]["size"].items():
        seconds = [f"{cell[key]:.1f}" for key in ("first_sweep_and_set_up_cpu_seconds", "sweep_cpu_seconds")]
        rows.append([f"{int(n):,}", *seconds, _memory(cell), f"{cell['rmse']:.3f}"])
    return rows


def spark_als(report: Report) -> Rows:
    """Spark's ALS and ours: time, error, memory."""
    size = report["size"]
    what = f"{size['ratings']:,} ratings, rank {size['rank']}, {report['cores']} cores"
    rows = [[what, "seconds for an iteration or sweep", "CPU seconds for it", "test RMSE"]]
    rows[0] += ["seconds in all", "CPU seconds in all"]
    rows[0] += [f"memory of {what}, GiB" for what in ("the driver", "Java", "Python workers")]
    for name, shown in (("ours", "ours, Gibbs sampling"), ("als", "Spark's ALS")):
        found = report["results"][name]
        memory = [f"{found['gib'][kind]:.1f}" for kind in ("driver", "java", "workers")]
        each = [f"{found[f'iteration_{kind}']:.2f}" for kind in ("seconds", "cpu_seconds")]
        total = [f"{found[f'total_{kind}']:.0f}" for kind in ("seconds", "cpu_seconds")]
        rows.append([shown, *each, f"{found['rmse']:.4f}", *total, *memory])
    return rows


def spark_penalties(report: Report) -> Rows:
    """The error of Spark's ALS on held-out training ratings, by its penalty."""
    errors = sorted((float(penalty), error) for penalty, error in report["results"]["penalties"].items())
    return [["`regParam` of ALS", *(f"{penalty:g}" for penalty, _ in errors)],
            ["RMSE on a tenth of the training ratings", *(f"{error:.4f}" for _, error in errors)]]  # fmt: skip


def spark_partitions(report: Report) -> Rows:
    """Time, traffic and memory of a sweep by the number of partitions, and with a user who has a fifth of the data."""
    what, runs = f"partitions, {report['size']['ratings']:,} ratings", dict(report["results"]["partitions"])
    if "skewed" in report["results"]:
        runs[f"{report['cores']}, skewed ratings"] = report["results"]["skewed"]
    rows = [[what, "seconds for a sweep", "CPU seconds for it", "MB sent to each executor", "MB returned"]]
    rows[0] += [f"memory of {whose}, GiB" for whose in ("workers", "the driver")]
    for shown, found in runs.items():
        seconds = [f"{found[f'iteration_{kind}']:.2f}" for kind in ("seconds", "cpu_seconds")]
        memory = [f"{found['gib'][kind]:.1f}" for kind in ("workers", "driver")]
        rows.append([shown, *seconds, f"{found['sent_mb']:.1f}", f"{found['returned_mb']:.0f}", *memory])
    return rows


DEFAULTS = {"gp": "GP", "boosting": "boosting", "forest": "forest", "ridge": "ridge", "ours": "ours"}


def _complete(report: Report) -> Report:
    """The sets on which all models were run."""
    return {title: cell for title, cell in report["cells"].items() if cell.keys() >= DEFAULTS.keys()}


def defaults_errors(report: Report) -> Rows:
    """RMSE within the range of the training rows, by that of the best peer; log density beside the GP's; time."""
    cells = _complete(report)
    rows = [["", "rows, columns", *(f"{name}: RMSE / best peer" for name in DEFAULTS.values())]]
    rows[0] += ["chosen", "log density, GP", "ours", "CPU seconds, GP", "ours"]
    for title, cell in cells.items():
        errors = {name: cell[name]["parts"]["range"]["rmse"] for name in DEFAULTS}
        best = min(error for name, error in errors.items() if name != "ours")
        density = [f"{cell[name]['parts']['range']['density']:.3f}" for name in ("gp", "ours")]
        seconds = [f"{sum(cell[name]['cpu_seconds'].values()):.0f}" for name in ("gp", "ours")]
        size = f"{cell['size'][0]:,}, {cell['size'][1]}"
        ratios = [f"{error / best:.3f}" for error in errors.values()]
        rows.append([title, size, *ratios, cell["ours"].get("chosen", "lines"), *density, *seconds])
    return [*rows, _defaults_overall(cells)]


def _defaults_overall(cells: Report) -> list[str]:
    """Geometric means of RMSE by that of the best single peer, mean log densities, median times."""
    logs = {name: mean(log(cell[name]["parts"]["range"]["rmse"]) for cell in cells.values()) for name in DEFAULTS}
    best = min(value for name, value in logs.items() if name != "ours")
    density = [mean(cell[name]["parts"]["range"]["density"] for cell in cells.values()) for name in ("gp", "ours")]
    seconds = [median(sum(cell[name]["cpu_seconds"].values()) for cell in cells.values()) for name in ("gp", "ours")]
    title = "geometric mean of RMSE / best single peer; mean; median"
    ratios = [f"{exp(value - best):.3f}" for value in logs.values()]
    return [title, "", *ratios, "", *(f"{value:.3f}" for value in density), *(f"{value:.0f}" for value in seconds)]


def defaults_coverage(report: Report) -> Rows:
    """Shares of targets in intervals of 50, 90 and 95 %, ours and the GP's, pooled over sets; RMSE in gaps, beyond."""
    rows = [["part", "sets", "ours: coverage of 50, 90, 95 %", "GP: coverage", "ours: RMSE / GP's, geometric mean"]]
    for part, title in (("range", "in range"), ("gap", "in gaps"), ("beyond", "beyond the rows")):
        found = [(cell["ours"]["parts"][part], cell["gp"]["parts"][part]) for cell in _complete(report).values()
                 if part in cell["ours"]["parts"]]  # fmt: skip
        shares = [", ".join(f"{mean(pair[k]['coverage'][j] for pair in found):.3f}" for j in range(3)) for k in (0, 1)]
        ratio = exp(mean(log(ours["rmse"] / peer["rmse"]) for ours, peer in found))
        rows.append([title, str(len(found)), *shares, f"{ratio:.3f}"])
    return rows


def out_of_core(report: Report) -> Rows:
    """Time and memory of fits in scratch files."""
    rows = [["ratings", "users", "items", "seconds for a sweep", "seconds in all", "anonymous memory, GB"]]
    for run in report["runs"]:
        found = run["result"]
        counts = [f"{run[name]:,}" for name in ("ratings", "users", "items")]
        seconds = [f"{found['sweep_seconds']:.1f}", f"{found['seconds']:.0f}"]
        rows.append([*counts, *seconds, f"{found['anonymous_gb']:.2f}"])
    return rows


def noise_kinds(report: Report) -> Rows:
    """RMSE, log density and coverage at held-out training rows by the kind of noise."""
    rows = [["set", "noise", "RMSE", "log density", "coverage of 50 %", "excess kurtosis of residuals", "CPU seconds"]]
    for name, cells in report["cells"].items():
        for noise, found in cells.items():
            error = f"{found['rmse']:.4g}"
            figures = [f"{found[key]:.3f}" for key in ("density", "covered_50")]
            rows.append([name, noise, error, *figures, f"{found['kurtosis']:.1f}", f"{found['cpu_seconds']:.0f}"])
    return rows


def noise_priors(report: Report) -> Rows:
    """Coverage of 50 % intervals and log density by the rate of the prior of the noise, means over functions."""
    rates = list(next(iter(next(iter(report["cells"].values())).values())))
    rows = [["functions", "noise / sd of f", *(f"rate {rate}" for rate in rates)]]
    for family, by_noise in report["cells"].items():
        for noise, by_rate in sorted(by_noise.items(), key=lambda item: -float(item[0])):
            means = [
                {key: mean([cell[key] for cell in by_rate[rate].values()]) for key in ("covered_50", "density")}
                for rate in rates
            ]
            rows.append([family, noise, *(f"{one['covered_50']:.2f}, {one['density']:.2f}" for one in means)])
    return rows


def seasons(report: Report) -> Rows:
    """RMSE of forecasts, means over series, and how often intervals of 50 and 90 % hold."""
    models = list(next(iter(report["cells"].values())))
    rows = [["series", *(f"{model}: RMSE" for model in models), "coverage of 50, 90 %", "without seasons", "chosen"]]
    for kind, cells in report["cells"].items():
        errors, covered = [], []
        for model in models:
            found = [one for one in cells.get(model, {}).values() if one is not None]
            errors.append(f"{mean(one['rmse'] for one in found):.3f}" if found else "")
            if found and "coverage_50" in found[0]:
                shares = (mean(one[f"coverage_{share}"] for one in found) for share in (50, 90))
                covered.append(", ".join(f"{share:.2f}" for share in shares))
        defaults = cells["defaults"].values()
        chosen = sum(one["chosen"].endswith("with seasons") for one in defaults)
        rows.append([kind, *errors, *covered, f"{chosen} of {len(defaults)} with seasons"])
    return rows


def traffic_errors(report: Report) -> Rows:
    """RMSE at hidden cells and coverage of 90 % intervals, beside the lowest published RMSE, which is quoted."""
    rows = [["set", "gaps", "rank", "RMSE", "lowest published, quoted", "coverage of 90 %", "CPU seconds"]]
    for name, cells in report["cells"].get("sets", {}).items():
        for gap, found in cells.items():
            quoted, method = report["published"][name][gap]
            shown = [f"{found['rmse']:.2f}", f"{quoted} ({method})", f"{found['coverage']:.3f}"]
            rows.append([name, gap, str(found["rank"]), *shown, f"{found['cpu_seconds']:.0f}"])
    return rows


def traffic_plain(report: Report) -> Rows:
    """RMSE of a plain decomposition by the seed of the mask, beside the published RMSE of one."""
    cells = report["cells"]["plain"]
    first, *others = next(iter(next(iter(cells.values())).values()))["rmse"]
    rows = [["set", "gaps", "rank", f"mask of seed {first}", *(f"seed {seed}" for seed in others), "BGCP, quoted"]]
    for name, by_gap in cells.items():
        for gap, found in by_gap.items():
            errors = [f"{error:.2f}" for error in found["rmse"].values()]
            rows.append([name, gap, str(found["rank"]), *errors, str(found["published"])])
    return rows


def traffic_chains(report: Report) -> Rows:
    """Held-out training cells in gaps of days, by the number of chains, with shrinkage and without."""
    rows = [["rank", "run", "RMSE", "coverage of 90 %", "CPU seconds"]]
    for rank, runs in report["cells"].get("chains", {}).items():
        for title, found in runs.items():
            numbers = [f"{found['rmse']:.1f}", f"{found['coverage']:.3f}", f"{found['cpu_seconds']:.0f}"]
            rows.append([rank.removeprefix("rank "), title, *numbers])
    return rows


def stations_left_out(report: Report) -> Rows:
    """RMSE at each station from the others, and over all of them, with coverage of 90 % intervals, by each field."""
    fields = report["cells"]
    first = next(iter(fields.values()))
    titles = ["station left out", "sd of its speeds", "nearest station", "weighted by distance"]
    rows = [titles + [title for kernel in fields for title in (f"field, {kernel}", "coverage of 90 %")]]
    for name in first:
        peers = [f"{first[name][key]:.2f}" for key in ("sd", "nearest", "weighted")]
        rows.append([name, *peers, *(text for cells in fields.values() for text in _of_field([cells[name]]))])
    peers = [f"{_root_mean_square(first, key):.2f}" for key in ("sd", "nearest", "weighted")]
    ours = [text for cells in fields.values() for text in _of_field(list(cells.values()))]
    return [*rows, ["all", *peers, *ours]]


def _root_mean_square(cells: Report, key: str) -> float:
    """Over all cells."""
    return float(mean(found[key] ** 2 for found in cells.values()) ** 0.5)


def _of_field(cells: list[Report]) -> list[str]:
    """RMSE over some stations, and mean coverage."""
    error = mean(found["field"] ** 2 for found in cells) ** 0.5
    return [f"{error:.2f}", f"{mean(found['coverage'] for found in cells):.3f}"]


TABLES: dict[str, dict[str, Callable[[Report], Rows]]] = {
    "gibbs_clicks.json": {
        "gibbs_clicks_times": gibbs_times,
        "gibbs_clicks_ratios": gibbs_ratios,
        "gibbs_clicks_memory": gibbs_memory,
    },
    "gibbs.json": {
        "gibbs_times": gibbs_times,
        "gibbs_ratios": gibbs_ratios,
        "gibbs_costs": gibbs_costs,
        "gibbs_peak": gibbs_peak,
    },
    "gibbs_paths.json": {"gibbs_paths": gibbs_paths},
    "gibbs_corating.json": {"gibbs_corating": gibbs_corating},
    "value.json": {"value_times": value_times},
    "recommend.json": {"recommend_times": recommend_times, "recommend_memory": recommend_memory},
    "latency.json": {"latency_answers": latency_answers, "latency_ratios": latency_ratios},
    "serve.json": {
        "serve_load": serve_load,
        "serve_memory": if_run("memory", serve_memory),
        "serve_sustained": if_run("sustained", serve_sustained),
    },
    "keep.json": {"kept_draws": kept_draws},
    "cold.json": {"cold_start": cold_start},
    "cold_lists.json": {
        "cold_lists_movielens_items": lambda report: cold_lists(report, "movielens, new items"),
        "cold_lists_movielens_users": lambda report: cold_lists(report, "movielens, new users"),
        "cold_lists_synthetic_items": lambda report: cold_lists(report, "synthetic, new items"),
        "cold_lists_synthetic_users": lambda report: cold_lists(report, "synthetic, new users"),
        "cold_lists_synthetic_known": lambda report: cold_lists(report, "synthetic, known"),
        "cold_lists_choice": cold_lists_choice,
    },
    "defaults.json": {"defaults_errors": defaults_errors, "defaults_coverage": defaults_coverage},
    "diversity.json": {"diversity_lists": diversity_lists, "diversity_choice": diversity_choice},
    "fields.json": {
        "field_neighbours": field_neighbours,
        "field_order": field_order,
        "field_around": field_around,
        "field_california": lambda report: field_scores(report, "california"),
        "field_satellite": lambda report: field_scores(report, "satellite"),
        "field_size": field_size,
    },
    "gaps.json": {"gaps": gaps},
    "lastfm.json": {"lastfm_lists": lastfm_lists, "lastfm_choice": lastfm_choice},
    "mutants.json": {"mutants": mutants},
    "prior_f.json": {"prior_f": prior_f},
    "prior_scale.json": {"prior_scale_rmse": prior_scale_rmse, "prior_scale_density": prior_scale_density},
    "mixing.json": {"mixing": mixing},
    "nuts.json": {"nuts_rates": nuts_rates},
    "regression.json": {"regression_scaling": regression_scaling, "regression_default": regression_default},
    "seasons.json": {"seasons": seasons},
    "stations.json": {"stations_left_out": stations_left_out},
    "noise_prior.json": {"noise_priors": noise_priors},
    "tails.json": {"noise_kinds": noise_kinds},
    "traffic.json": {
        "traffic_errors": traffic_errors,
        "traffic_plain": traffic_plain,
        "traffic_chains": traffic_chains,
    },
    "outofcore.json": {"out_of_core": out_of_core},
    "spark.json": {
        "spark_als": spark_als,
        "spark_penalties": spark_penalties,
        "spark_partitions": spark_partitions,
    },
    "sparse_core.json": {
        "sparse_core_entries": lambda report: sparse_core_times(report["by_entries"], "Q"),
        "sparse_core_modes": lambda report: sparse_core_times(report["by_modes"], "D"),
        "sparse_core_large": sparse_core_large,
    },
}
"""By results file, then by the name that stands in the page's marker."""
