"""The Stan contestant of `nuts.py`, for an interpreter with pystan: asked in files of a folder, answering there."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import stan

# Steps of the first run, warm-up and draws each.
FIRST = 50
# the compiler may take longer than the five minutes that pystan's client waits
aiohttp.client.DEFAULT_TIMEOUT = aiohttp.ClientTimeout(total=None)


def cpu() -> float:
    """CPU seconds of this process and of all that it started, running or ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    total = sum(usage.ru_utime + usage.ru_stime for usage in both)
    fields = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
    known = {os.getpid()}
    while more := {pid for pid, values in fields.items() if int(values[1]) in known} - known:
        known |= more
    ticks = sum(int(value) for pid in known - {os.getpid()} if pid in fields for value in fields[pid][11:15])
    return total + ticks / os.sysconf("SC_CLK_TCK")


def plain(values: Any) -> Any:
    return values.item() if values.ndim == 0 else values.tolist()


def main(folder: Path) -> None:
    stored = np.load(folder / "data.npz")
    starts = np.load(folder / "starts.npz")
    asked = json.loads((folder / "asked.json").read_text())
    chains = len(starts["alpha"])
    inits = [{name: plain(starts[name][c]) for name in starts.files} for c in range(chains)]
    program = Path(__file__).with_name("tucker.stan").read_text()
    began = time.perf_counter()
    model = stan.build(program, data={name: plain(stored[name]) for name in stored.files}, random_seed=asked["seed"])
    built = time.perf_counter() - began

    def sample(warmup: int, draws: int) -> tuple[Any, float, float]:
        clock, used = time.perf_counter(), cpu()
        fit = model.sample(num_chains=chains, num_warmup=warmup, num_samples=draws, init=inits)
        return fit, time.perf_counter() - clock, cpu() - used

    # longer and longer runs, half of each warm-up, until another would take more than the time; the last one counts
    steps, wall = FIRST // 2, 0.0
    while wall < asked["seconds"] / 3:
        steps *= 2
        fit, wall, used = sample(steps, steps)
    np.savez(folder / "draws.npz", **{name: fit[name] for name in ("U1", "U2", "W", "alpha")})
    answer = {
        "wall": wall,
        "cpu": used,
        "build_seconds": built,
        "warmup": steps,
        "draws": steps,
        "leapfrogs": float(np.mean(fit["n_leapfrog__"])),
        "at_max_depth": float(np.mean(fit["treedepth__"] >= 10)),
        "divergences": int(np.sum(fit["divergent__"])),
    }
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
