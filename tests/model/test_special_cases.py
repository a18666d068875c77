"""Models that the paper names as special cases, written plainly in NumPy, against the Tucker model.

Log joint and gradient of PMF, the formula with binary side information and BPMF with ones appended are in
`tests/model/test_model.py`. Seeds are fixed; bounds say how often a right program would miss them with a fresh seed.
"""

import numpy as np
import pytest

from tuckergp.data.tables import as_table
from tuckergp.features import Cholesky
from tuckergp.inference.base import Problem
from tuckergp.inference.sgd import SGD
from tuckergp.kernels import SE, Identity, Matern12
from tuckergp.likelihoods import Gaussian
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import Parameters, TuckerModel, make_core
from tuckergp.paper.movielens_bpmf import sampler
from tuckergp.priors import hyper
from tuckergp.priors.regressions import weights_given_factors
from tuckergp.random import stream
from tuckergp.statistics.evidence import Evidence


def ratings(rng, users, items, n):
    """Distinct pairs, everyone rated or rating at least once, as rows i and j of a table."""
    first = [(k % users, k % items) for k in range(max(users, items))]
    rest = [(i, j) for i in range(users) for j in range(items) if (i, j) not in first]
    pairs = np.array(first + [rest[k] for k in rng.permutation(len(rest))[: n - len(first)]])
    return pairs[:, 0], pairs[:, 1]


def factorisation(i, j, y, r, noise, sigma, constant):
    """Users times items with identity kernels and W = I."""
    modes = [Mode("user", Identity(), constant=constant), Mode("item", Identity(), constant=constant)]
    design, _ = Design.fit(modes, as_table({"user": i, "item": j}, "ratings"))
    np.testing.assert_array_equal(design.index, np.stack([i, j], axis=1))  # rows in the order of the ids
    return Problem(TuckerModel(make_core("identity", [r, r]), Gaussian(noise), np.full(2, sigma), 1.0), design, y)


def test_pmf_takes_the_same_path_of_stochastic_gradients():
    """Section 3: "with W = I fixed, we recover Probabilistic Matrix Factorization"; the appendix's SGD update.

    Three epochs on the same batches end at the same U and V.
    """
    rng = np.random.default_rng(0)
    r, noise, sigma, step, size = 3, 0.3, 0.8, 1e-3, 7
    i, j = ratings(rng, 9, 7, 40)
    y = rng.standard_normal(40)
    problem = factorisation(i, j, y, r, noise, sigma, constant=False)
    algorithm = SGD(epochs=3, method="sgd", batch_size=size, step_u=step, validation=0.0, init_scale=1.0)
    state = algorithm.init(problem, stream(1, 0))
    U, V = (table.copy() for table in algorithm.parameters(problem, state).U)
    for epoch in (1, 2, 3):
        order = stream(1, epoch).permutation(state.train)
        for batch in (order[k : k + size] for k in range(0, len(order), size)):
            d_U, d_V = -U / sigma**2, -V / sigma**2
            for k in batch:
                scaled = len(y) / len(batch) * (y[k] - U[i[k]] @ V[j[k]]) / noise
                d_U[i[k]] += scaled * V[j[k]]
                d_V[j[k]] += scaled * U[i[k]]
            U, V = U + step / 2 * d_U, V + step / 2 * d_V
        state, _ = algorithm.step(problem, state, stream(1, epoch))
    found = algorithm.parameters(problem, state)
    np.testing.assert_allclose(found.U[0], U, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.U[1], V, rtol=1e-10, atol=1e-12)


class TestBayesianPMF:
    """Section 3 and the conclusion: PMF and BPMF (Salakhutdinov and Mnih 2008) are special cases.

    The same: y_ij ~ N(U_i'V_j, 1 / alpha), U_i ~ N(mu, Lambda^-1), mu ~ N(0, (beta_0 Lambda)^-1), Lambda ~ Wishart of
    nu_0 degrees of freedom and scale W_0, and so all of BPMF's conditionals. An Identity and a Constant term with W = I
    are that model: mu is the weight of the constant, beta_0 its precision tau. Ours has nu_0 = dof + r + 1 and
    W_0^-1 = dof sigma_u^2 I, so that Lambda^-1 has the mean sigma_u^2 I; theirs, nu_0 = r and W_0 = I, gives it none,
    and is a prior of its own, `tuckergp.paper.movielens_bpmf.BayesianPMF`.

    Different by default: the prior of Lambda, with dof = 60; tau and alpha have gamma priors and are drawn, where BPMF
    fixes both at 2; a sweep draws rows before their hyperparameters, and those of a mode next to its rows. With a full
    core (the paper's TGP with W learned) the prior of W is Gaussian, which is not BPMF's Gaussian-Wishart, as the
    paper says of its table. `tuckergp.paper.movielens_bpmf` has the settings of BPMF's authors, and its sampler
    is the one tested here.
    """

    ALPHA, BETA, R = 2.0, 2.0, 2  # the first two as the authors of BPMF fix them

    def problem(self, rng, users=8, items=6, n=30):
        i, j = ratings(rng, users, items, n)
        U, V = rng.standard_normal((users, self.R)), rng.standard_normal((items, self.R))
        y = np.sum(U[i] * V[j], axis=1) + rng.standard_normal(n) / np.sqrt(self.ALPHA)
        return factorisation(i, j, y, self.R, 1 / self.ALPHA, self.R**-0.5, constant=True), U, V

    def rows(self, U, V, i, j, y, mu, Lambda):
        """BPMF's conditional of every U_i: means and covariances."""
        means, covariances = [], []
        for user in range(len(U)):
            z, of = V[j[i == user]], y[i == user]
            covariance = np.linalg.inv(Lambda + self.ALPHA * z.T @ z)
            means.append(covariance @ (self.ALPHA * z.T @ of + Lambda @ mu))
            covariances.append(covariance)
        return np.array(means), np.array(covariances)

    def wishart_of(self, U):
        """BPMF's conditional of Lambda: nu_0*, and the inverse of W_0*."""
        N, mean = len(U), U.mean(axis=0)
        S = (U - mean).T @ (U - mean) / N
        return self.R + N, np.eye(self.R) + N * S + self.BETA * N / (self.BETA + N) * np.outer(mean, mean)

    def test_conditionals_of_user_factors_are_theirs(self):
        rng = np.random.default_rng(1)
        problem, U, V = self.problem(rng)
        mu, A = rng.standard_normal(self.R), rng.standard_normal((self.R, self.R))
        Lambda = A @ A.T + np.eye(self.R)
        precision = Precision(self.ALPHA)
        evidence = Evidence(problem.sorted[0], problem.y, precision, problem.model.core, 0, [U, V], np.zeros(0))
        mean = np.asarray(problem.design.modes[0].features @ mu[None, :])
        means, covariances = self.rows(U, V, *problem.design.index.T, problem.y, mu, Lambda)
        prior_shift = mean @ Lambda
        ours = evidence.solve(prior_shift, Lambda, np.zeros_like(mean))
        np.testing.assert_allclose(ours, means, rtol=1e-10)
        # a draw is the mean plus a matrix times the noise, so unit noise shows the columns of the matrix
        roots = [evidence.solve(prior_shift, Lambda, np.tile(e, (len(U), 1))) - ours for e in np.eye(self.R)]
        root = np.stack(roots, axis=2)
        np.testing.assert_allclose(root @ root.transpose(0, 2, 1), covariances, rtol=1e-9, atol=1e-12)

    def test_the_precision_is_drawn_from_their_wishart(self, monkeypatch):
        problem, _, _ = self.problem(np.random.default_rng(2))
        asked, draw = [], hyper.wishart
        monkeypatch.setattr(
            hyper, "wishart", lambda dof, inverse, rng: asked.append((dof, inverse)) or draw(dof, inverse, rng)
        )
        gibbs = sampler()
        state = self.start(gibbs, problem)
        state, _ = gibbs.step(problem, state, stream(0, 1))
        for mode, (dof, inverse) in zip(state.modes, asked, strict=True):
            theirs, scale = self.wishart_of(mode.psi)
            assert dof == theirs
            np.testing.assert_allclose(inverse, scale, rtol=1e-7)  # tau begins at its prior mean, 2

    def test_wishart_draws_have_the_moments_of_theirs(self):
        # 9 z-scores over 4,000 draws; |z| < 5 fails a right one 5 times in a million
        dof, scale = 7.0, np.array([[2.0, 0.5], [0.5, 1.0]])
        rng = np.random.default_rng(3)
        draws = np.array([hyper.wishart(dof, np.linalg.inv(scale), rng) for _ in range(4000)])
        gap = draws - dof * scale
        expected = dof * (scale**2 + np.outer(np.diag(scale), np.diag(scale)))  # variances of the entries
        for values in (gap, gap**2 - expected):
            z = values.mean(axis=0) / values.std(axis=0) * np.sqrt(len(draws))
            assert np.abs(z).max() < 5

    def test_the_mean_is_drawn_from_their_normal(self):
        # whitened draws of mu: 2 means and 3 products, |z| < 5 over 4,000 draws fails a right one 3 times in a million
        rng = np.random.default_rng(4)
        problem, U, _ = self.problem(rng)
        A = rng.standard_normal((self.R, self.R))
        Lambda, N = A @ A.T + np.eye(self.R), len(U)
        arguments = (problem.regressions[0], U, np.array([self.BETA]), np.zeros((1, self.R)), Lambda)
        draws = np.concatenate([weights_given_factors(*arguments, rng) for _ in range(4000)])
        white = (draws - N * U.mean(axis=0) / (self.BETA + N)) @ np.linalg.cholesky((self.BETA + N) * Lambda)
        values = np.column_stack([white, white**2 - 1, white[:, 0] * white[:, 1]])
        assert np.abs(values.mean(axis=0) / values.std(axis=0) * np.sqrt(len(draws))).max() < 5

    def test_the_sampler_has_the_posterior_of_theirs(self):
        # mean and mean square of f at 48 cells, batch means of 40 batches; |z| < 4.5 fails a right sampler in 1 of 400
        # fresh seeds (t with about 78 degrees of freedom, 96 comparisons)
        problem, _, _ = self.problem(np.random.default_rng(5))
        draws = 2000
        ours, theirs = self.our_draws(problem, draws), self.their_draws(problem, draws)
        for power in (1, 2):
            means, errors = zip(*(self.batched(values**power) for values in (ours, theirs)), strict=True)
            z = (means[0] - means[1]) / np.hypot(*errors)
            assert np.abs(z).max() < 4.5

    def our_draws(self, problem, draws, warmup=200):
        gibbs, found = sampler(), []
        state = self.start(gibbs, problem)
        for t in range(draws + warmup):
            state, _ = gibbs.step(problem, state, stream(0, t + 1))
            if t >= warmup:
                found.append(state.modes[0].psi @ state.modes[1].psi.T)
        return np.array(found)

    def start(self, gibbs, problem):
        """With the noise precision of the authors."""
        state = gibbs.init(problem, stream(0, 0))
        return state._replace(likelihood=state.likelihood._replace(alpha=self.ALPHA))

    def their_draws(self, problem, draws, warmup=200):
        """Algorithm of the BPMF paper: hyperparameters of users and of items, then users, then items."""
        rng = np.random.default_rng(6)
        i, j = problem.design.index.T
        sides = [rng.standard_normal((mode.n_rows, self.R)) for mode in problem.design.modes]
        found = []
        for t in range(draws + warmup):
            hypers = []
            for X in sides:
                dof, inverse = self.wishart_of(X)
                # a Wishart of whole degrees of freedom is a sum of squares of normals
                G = rng.standard_normal((dof, self.R)) @ np.linalg.cholesky(np.linalg.inv(inverse)).T
                Lambda, count = G.T @ G, self.BETA + len(X)
                spread = np.linalg.cholesky(np.linalg.inv(count * Lambda))
                hypers.append((X.sum(axis=0) / count + spread @ rng.standard_normal(self.R), Lambda))
            for d, (mine, other) in enumerate(((i, j), (j, i))):
                means, covariances = self.rows(sides[d], sides[1 - d], mine, other, problem.y, *hypers[d])
                noise = rng.standard_normal((*means.shape, 1))
                sides[d] = means + (np.linalg.cholesky(covariances) @ noise)[:, :, 0]
            if t >= warmup:
                found.append(sides[0] @ sides[1].T)
        return np.array(found)

    def batched(self, values, batches=40):
        """Means and their standard errors, from means of batches."""
        means = values.reshape(batches, -1, *values.shape[1:]).mean(axis=1)
        return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


class TestStochasticRelationalModel:
    """Section 4: the Stochastic Relational Model (Yu et al. 2006) is "a special case of our model", W = I and D = 2.

    There f(u, v) = d^(-1/2) sum_k f_k(u) g_k(v) with d pairs of functions from GP(0, k_1) and GP(0, k_2), and the
    covariance of f is k_1 times k_2 whatever d is. W = I with exact features of both kernels and the default
    sigma_u^2 = r^(-1/2) is that, with r for d: psi_1 are r functions from GP(0, k_1) times r^(-1/4).
    """

    KERNELS = (SE(0.7), Matern12(1.3))

    def design(self):
        x, t = np.array([0.0, 0.4, 1.0, 2.5]), np.array([0.0, 0.5, 2.0])
        grid = [values.ravel() for values in np.meshgrid(x, t, indexing="ij")]
        modes = [
            Mode(name, kernel, features=Cholesky(), constant=False, whiten=False)
            for name, kernel in zip(("x", "t"), self.KERNELS, strict=True)
        ]
        design, _ = Design.fit(modes, as_table({"x": grid[0], "t": grid[1]}, "grid"))
        return design, [kernel(values) for kernel, values in zip(self.KERNELS, (x, t), strict=True)]

    @pytest.mark.parametrize("r", [1, 4])
    def test_weight_space_is_its_construction(self, r):
        design, grams = self.design()
        core = make_core("identity", [r, r])
        model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
        for mode, K in zip(design.modes, grams, strict=True):
            np.testing.assert_allclose(mode.features @ mode.features.T, K, atol=1e-12)
        drawn = model.init(design, np.random.default_rng(0))
        standard = [U / sigma for U, sigma in zip(drawn.U, model.sigma_u, strict=True)]
        f, g = (mode.features @ Z for mode, Z in zip(design.modes, standard, strict=True))
        np.testing.assert_allclose(model.predict(drawn, design), (f @ g.T).ravel() / np.sqrt(r), atol=1e-12)

    @pytest.mark.parametrize("r", [1, 4])
    def test_prior_draws_have_the_product_kernel_as_covariance(self, r):
        # 78 pairs of cells, 10,000 draws; |z| < 5 fails a right prior once in 20,000 if means of products are normal
        design, grams = self.design()
        core = make_core("identity", [r, r])
        model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
        rng = np.random.default_rng(r)
        f = np.array([model.predict(model.init(design, rng), design) for _ in range(10_000)])
        a, b = np.triu_indices(f.shape[1])
        products = f[:, a] * f[:, b] - np.kron(*grams)[a, b]
        assert np.abs(products.mean(axis=0) / products.std(axis=0) * np.sqrt(len(f))).max() < 5


def test_full_rank_is_rank_n_with_unit_weights():
    """Section 2.1: theta x_d phi_d is the model that the decomposition approximates; with r = n, W = theta, U_d = I."""
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(20, 3))
    modes = [Mode(f"x{d}", SE(0.5), features=Cholesky(max_features=4), constant=False) for d in range(3)]
    design, _ = Design.fit(modes, as_table({f"x{d}": x[:, d] for d in range(3)}, "inputs"))
    phi = [mode.features[rows] for mode, rows in zip(design.modes, design.index.T, strict=True)]
    theta = rng.standard_normal((4, 4, 4))
    model = TuckerModel(make_core("full", [4, 4, 4]), Gaussian(1.0), np.ones(3), 1.0)
    expected = np.array([np.kron(np.kron(a, b), c) @ theta.ravel() for a, b, c in zip(*phi, strict=True)])
    found = model.predict(Parameters((np.eye(4),) * 3, theta.ravel()), design)
    np.testing.assert_allclose(found, expected, atol=1e-12)
