"""The table of differences between methods compares what has the same seed."""

from tuckergp.paper.variational import differences_table


def figures(error, density, std, seconds, **more):
    return {"test_rmse": error, "log_density": density, "std_f": std, "fit_cpu_seconds": seconds, **more}


def test_methods_are_compared_seed_by_seed():
    cells = {
        "wind/vi/seed 0": figures(3.0, -2.5, 1.5, 4.0, elbo=-1500.0),
        "wind/vi/seed 1": figures(2.9, -2.4, 1.8, 4.0, elbo=-1000.0),
        "wind/gibbs/seed 1": figures(2.8, -2.3, 2.0, 2.0),
        "wind/vi factorised/seed 0": figures(3.25, -2.75, 1.2, 2.0, elbo=-4000.0),
    }
    assert differences_table(cells)[1:] == [
        ["Irish wind", "VI", "Gibbs sampling", "1", "+0.1000", "-0.1000", "", "0.90", "2.00"],
        ["Irish wind", "VI, all entries independent", "VI", "0", "+0.2500", "-0.2500", "-2,500", "0.80", "0.50"],
    ]
