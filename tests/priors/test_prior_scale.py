"""What the prior says of f before there are data, by simulation; and the prior of Lambda against closed forms."""

from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from tests.helpers import random_design, z_scores
from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.tables import as_table
from tuckergp.inference import VI, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.cores import Learned
from tuckergp.model.design import Design
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.priors.beliefs import PrecisionBelief
from tuckergp.priors.hyper import PrecisionPrior

DOF, VARIANCE = 12.0, 0.3
CORES = [("identity", modes, r) for modes in (2, 3) for r in (1, 5, 15, 32, 64)]
CORES += [("full", 2, r) for r in (1, 5, 15, 32, 64)] + [("full", 3, r) for r in (1, 5, 15)]
CORES += [("identity", 1, 5), ("identity", 4, 5), ("full", 1, 5), ("full", 4, 4)]
CORES += [(core, modes, 8) for core in ("superdiagonal", "pairwise", Learned("full", 0.3)) for modes in (2, 3)]


def model_of(inference, core, modes, r):
    """The model with the prior scales that an estimator gives it."""
    X = np.arange(6.0)[:, None].repeat(modes, axis=1)
    columns = [Mode(f"x{d}", Identity()) for d in range(modes)]
    table = {f"x{d}": X[:, d] for d in range(modes)}
    fitted = TuckerGPRegressor(columns, rank=r, core=core, inference=inference, random_state=0)
    return fitted.fit(table, np.sin(X[:, 0])).fit_.draws.model


def draw_f(model, gibbs, rng, cells=20):
    """f from the residuals alone, at cells that share no row."""
    psi = []
    for d, r in enumerate(map(int, model.core.ranks)):
        precision = gibbs.precision_prior(model, d).draw(np.zeros((r, r)), 0, rng)
        psi.append(rng.standard_normal((cells, r)) @ np.linalg.inv(np.linalg.cholesky(precision)))
    W = model.sigma_w * rng.standard_normal(model.core.n_weights)
    share = model.core.share
    if share < 1:  # one weight of two entries says how many are included: Beta(2 share, 2 (1 - share))
        W *= rng.random(len(W)) < rng.beta(2 * share, 2 * (1 - share))
    index = np.tile(np.arange(cells, dtype=np.int32)[:, None], (1, len(psi)))
    return model.contract(psi, W, index)


@pytest.mark.parametrize(("core", "modes", "r"), CORES, ids=str)
def test_the_prior_standard_deviation_of_f_is_the_scale_at_every_rank(core, modes, r):
    # Mean squares of 20 cells in 600 draws of the scales have standard errors of 1 to 8 % of the variance; a Wishart
    # prior centred on Lambda instead of Lambda^-1 is 63 % off at r = 15, D = 2. |z| < 4.5 in 28 cases
    scale, rng = 0.5, np.random.default_rng(r)
    gibbs = Gibbs(draws=1, warmup=0, scale=scale)
    model = model_of(gibbs, core, modes, r)
    squares = np.array([np.mean(draw_f(model, gibbs, rng) ** 2) for _ in range(600)])
    assert abs(z_scores(squares[:, None] - scale**2)[0]) < 4.5, np.sqrt(squares.mean())


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("r", [1, 2, 7])
class TestPrecisionPrior:
    def prior(self, r, scalar):
        return PrecisionPrior.centred(DOF, VARIANCE, r, scalar)

    def test_the_inverse_has_the_mean_that_rows_of_the_prior_and_of_the_data_have_together(self, r, scalar):
        # 12 rows of variance 0.3, and 5 rows; |z| < 5 on at most 28 entries
        rng = np.random.default_rng(0)
        for rows in (np.zeros((0, r)), rng.standard_normal((5, r))):
            spread = rows.T @ rows
            drawn = np.array([np.linalg.inv(self.prior(r, scalar).draw(spread, len(rows), rng)) for _ in range(6_000)])
            expected = (DOF * VARIANCE * np.eye(r) + spread) / (DOF + len(rows))
            if scalar:
                expected = np.eye(r) * np.trace(expected) / r
            assert np.abs(z_scores((drawn - expected).reshape(len(drawn), -1))).max() < 5

    def test_rows_without_it_have_a_multivariate_t_distribution(self, r, scalar):
        # of one row; with one scale of all rows together. Its variance is 0.3, as it has dof (r) + 2 degrees of freedom
        rng = np.random.default_rng(1)
        count, df = (4, DOF * r + 2) if scalar else (1, DOF + 2)
        density = stats.multivariate_t(shape=VARIANCE * (df - 2) / df * np.eye(count * r), df=df)
        one, other = rng.standard_normal((2, count, r))
        ours = [self.prior(r, scalar).log_marginal(rows.T @ rows, count) for rows in (one, other)]
        theirs = density.logpdf([one.ravel(), other.ravel()])
        assert ours[0] - ours[1] == pytest.approx(theirs[0] - theirs[1])

    def test_variational_inference_has_the_same_prior(self, r, scalar):
        model = TuckerModel(
            make_core("full" if scalar else "identity", [r, r]), Gaussian(1.0), np.full(2, VARIANCE**0.5), 1.0
        )
        of_gibbs = Gibbs(dof=DOF).precision_prior(model, 0)
        assert asdict(of_gibbs) == pytest.approx(asdict(self.prior(r, scalar)))
        belief = PrecisionBelief.of(self.prior(r, scalar), r)
        spread = np.diag(np.arange(1.0, r + 1))
        drawn = [
            drawing(np.random.default_rng(2))
            for drawing in (lambda rng: self.prior(r, scalar).draw(spread, 3, rng), belief.given(spread, 3).draw)
        ]
        np.testing.assert_allclose(*drawn)


@pytest.mark.parametrize("core", ["identity", "full"])
def test_variational_inference_takes_the_scales_and_the_prior_of_the_sampler(core):
    vi, gibbs = VI(iterations=1, dof=DOF, scale=0.5), Gibbs(draws=1, warmup=0, dof=DOF, scale=0.5)
    model, theirs = (model_of(inference, core, 2, 3) for inference in (vi, gibbs))
    np.testing.assert_allclose(model.sigma_u, theirs.sigma_u)
    design = random_design(np.random.default_rng(0), [4, 4], [2, 2], 5, "rows")
    for d, prior in enumerate(vi.priors(Problem(model, design, np.zeros(5)))):
        ours = PrecisionBelief.of(gibbs.precision_prior(theirs, d), 3)
        assert prior.precision.dof == pytest.approx(ours.dof)
        np.testing.assert_allclose(prior.precision.inverse_scale, ours.inverse_scale)


@pytest.mark.parametrize("core", ["identity", "full"])
@pytest.mark.parametrize("modes", [1, 2, 3])
def test_with_fixed_scales_the_variance_of_f_is_the_product_of_the_numbers_of_terms(core, modes):
    # a Constant, which each mode has by default, and one term: 2^D; with two terms in the first mode 3 2^(D - 1)
    rng = np.random.default_rng(3)
    table = {"x0": rng.standard_normal(8), **{f"x{d}": np.arange(8.0) for d in range(1, modes)}}
    rest = [Mode(f"x{d}", Identity()) for d in range(1, modes)]
    for kernel, terms in ((Identity(), 2), (Identity() + SE(1.0), 3)):
        design = Design.fit([Mode("x0", kernel), *rest], as_table(table, "data"))[0]
        shape = make_core(core, [4] * modes)
        model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
        squares = np.array([np.mean(model.predict(model.init(design, rng), design) ** 2) for _ in range(2_000)])
        assert abs(z_scores(squares[:, None] - terms * 2 ** (modes - 1))[0]) < 4.5
