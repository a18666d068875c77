"""The section on what the paper proves: entries tend to N(0, 1), features tend to their kernel."""

from __future__ import annotations

from tuckergp.paper import theory_figures, theory_report
from tuckergp.paper.report.blocks import Block, Section, Table, Text
from tuckergp.paper.report.stored import Drawer, Stored

__all__ = ["sections"]


def sections(stored: Stored, draw: Drawer) -> list[Section]:
    """What there is of it."""
    results = stored.get("theory")
    if results is None:
        return []
    blocks: list[Block] = [
        Text(
            "The appendix proves that an entry of W with all U multiplied in tends to N(0, 1) as r grows. Draws from "
            "the prior beside the normal, by rank, and beside closed forms of the fourth moment."
        ),
        draw(
            "theory_quantiles",
            "Quantiles of entries against those of N(0, 1), by rank.",
            "Q-Q plots: tails are heavy for r = 1 and lie on the diagonal from about r = 20 on.",
            lambda: theory_figures.quantiles(results),
        ),
        Table(
            "Largest distance to the distribution function of N(0, 1); in brackets the leading term of theory",
            theory_report.distance_table(results),
        ),
        Table("Moments of an entry", theory_report.moments_table(results)),
        Text(
            "Features stand for a kernel: random Fourier and hashed ones are unbiased with variance of order 1/n, "
            "Nystrom and pivoted Cholesky use the inputs and do better."
        ),
        draw(
            "theory_errors",
            "Root mean squared error of the kernel against the number of features.",
            "Lines of random features fall with slope -1/2; Nystrom and Cholesky fall faster where kernels are smooth.",
            lambda: theory_figures.errors(results),
        ),
        Table("Root mean squared error of the kernel; in brackets that of theory", theory_report.errors_table(results)),
        Table("How fast errors fall", theory_report.rates_table(results)),
        Table("Whether maps are unbiased, and their variance", theory_report.bias_table(results)),
    ]
    return [Section("theory", "Theory: convergence and features", blocks)]
