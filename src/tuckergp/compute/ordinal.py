"""Normal distributions cut into intervals: exact truncated draws, interval probabilities and their logarithms.

An interval is (lower, upper), either end possibly infinite, and the normal is N(f, 1). Everything is computed in the
tail that the interval lies in, so that nothing cancels or underflows however far f is from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute.compiled import jit

Array = npt.NDArray[Any]

ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# From here on the series of Mills' ratio below is exact to rounding, well before erfc underflows
FAR = 25.0
LEAST_U, MOST_U = 2.0**-54, 1.0 - 2.0**-53


@jit
def upper_tail(x: float) -> float:
    """The upper tail of the standard normal, Q(x) = P(N(0, 1) > x)."""
    return 0.5 * math.erfc(ROOT_HALF * x)


@jit
def upper_quantile(q: float) -> float:
    """The x with Q(x) = q, for 0 < q <= 1/2: Wichura (1988), algorithm AS 241, PPND16."""
    if q >= 0.075:
        y = 0.5 - q
        r = 0.180625 - y * y
        above = (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) * r
            + 4.5921953931549871457e4) * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
            + 1.3314166789178437745e2) * r + 3.3871328727963666080e0)  # fmt: skip
        below = (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) * r
            + 2.1213794301586595867e4) * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
            + 4.2313330701600911252e1) * r + 1.0)  # fmt: skip
        return y * above / below
    r = math.sqrt(-math.log(q))
    if r <= 5.0:
        r -= 1.6
        above = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
            + 1.27045825245236838258e0) * r + 3.64784832476320460504e0) * r + 5.76949722146069140550e0) * r
            + 4.63033784615654529590e0) * r + 1.42343711074968357734e0)  # fmt: skip
        below = (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
            + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0) * r
            + 2.05319162663775882187e0) * r + 1.0)  # fmt: skip
        return above / below
    r -= 5.0
    above = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
        + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0) * r
        + 5.46378491116411436990e0) * r + 6.65790464350110377720e0)  # fmt: skip
    below = (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
        + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
        + 5.99832206555887937690e-1) * r + 1.0)  # fmt: skip
    return above / below


@jit
def log_mills(x: float) -> float:
    """Log of Q(x) x / phi(x) for x >= FAR, by its asymptotic series in 1 / x^2."""
    y = 1.0 / (x * x)
    return math.log1p(y * (-1.0 + y * (3.0 + y * (-15.0 + y * (105.0 + y * (-945.0 + y * (10395.0 - 135135.0 * y)))))))


@jit
def log_tail_ratio(a: float, width: float) -> float:
    """Log of Q(a + width) / Q(a) for a >= FAR."""
    if math.isinf(width):
        return -np.inf
    return -width * (a + 0.5 * width) - math.log1p(width / a) + log_mills(a + width) - log_mills(a)


@jit
def excess(a: float, width: float, u: float, v: float) -> float:
    """Find e with Q(a + e) = v Q(a) + u Q(a + width), for a >= 0 and u + v = 1."""
    if a < FAR:
        return upper_quantile(v * upper_tail(a) + u * upper_tail(a + width)) - a
    ratio = log_tail_ratio(a, width)
    t = -math.log1p(u * math.expm1(ratio)) if ratio > -0.5 else -math.log(v + u * math.exp(ratio))
    # e a + e^2 / 2 = t up to the slow terms of log_tail_ratio, which shrink the error by 1 / a^2 per round
    e = 2.0 * t / (a + math.sqrt(a * a + 2.0 * t))
    for _ in range(5):
        s = t - math.log1p(e / a) + log_mills(a + e) - log_mills(a)
        e = 2.0 * s / (a + math.sqrt(a * a + 2.0 * s))
    return e


@jit
def truncated_normal(f: float, lower: float, upper: float, u: float) -> float:
    """Return the u-quantile of N(f, 1) truncated to (lower, upper)."""
    u = min(max(u, LEAST_U), MOST_U)
    v = 1.0 - u
    a, b = lower - f, upper - f
    if a >= 0.0:
        z = lower + excess(a, upper - lower, u, v)
    elif b <= 0.0:
        z = upper - excess(-b, upper - lower, v, u)
    else:
        left, right = upper_tail(-a), upper_tail(b)
        p = v * left + u * (1.0 - right)
        z = f - upper_quantile(p) if p <= 0.5 else f + upper_quantile(u * right + v * (1.0 - left))
    if z < lower:
        z = lower
    if z > upper:
        z = upper
    return z


@jit
def truncated_normals(f: Array, lower: Array, upper: Array, uniforms: Array) -> Array:
    """Draw from N(f, 1) truncated to (lower, upper), all of shape (N,), by inverting the CDF at ``uniforms`` in [0, 1).

    One uniform for each observation, so that draws depend on nothing else. Finite for every finite f and interval.
    """
    z = np.empty(f.size)
    for i in range(f.size):
        z[i] = truncated_normal(f[i], lower[i], upper[i], uniforms[i])
    return z


@jit
def narrow_series(middle: float, half: float) -> float:
    """Normal mass of middle -+ half over its width times the density at the middle, less 1, by Taylor's series.

    For half and middle half of at most 0.1.
    """
    h, s = half * half, (middle * half) ** 2
    return (
        (s - h) / 6.0
        + (s * (s - 6.0 * h) + 3.0 * h * h) / 120.0
        + (s * (s * (s - 15.0 * h) + 45.0 * h * h) - 15.0 * h * h * h) / 5040.0
        + (s * (s * (s * (s - 28.0 * h) + 210.0 * h * h) - 420.0 * h * h * h) + 105.0 * h * h * h * h) / 362880.0
    )


@jit
def log_narrow(middle: float, half: float) -> float:
    """Log of the normal mass of middle -+ half where half and middle half are at most 0.1."""
    return math.log(2.0 * half) - LOG_ROOT_2PI - 0.5 * middle * middle + math.log1p(narrow_series(middle, half))


@jit
def log_mass(f: float, lower: float, upper: float) -> float:
    """Log of Phi(upper - f) - Phi(lower - f), accurate however narrow or far the interval; -inf if it is empty."""
    width = upper - lower
    if width <= 0.0:
        return -np.inf
    a, b = lower - f, upper - f
    if a + b < 0.0:
        a, b = -b, -a
    # now the middle of the interval is at 0 or to the right of it
    half = 0.5 * width
    if half <= 0.1 and (a + half) * half <= 0.1:
        return log_narrow(a + half, half)
    if a >= FAR:
        tail = -0.5 * a * a - LOG_ROOT_2PI - math.log(a) + log_mills(a)
        return tail + math.log1p(-math.exp(log_tail_ratio(a, width)))
    if a > 0.0:
        return math.log(upper_tail(a) - upper_tail(b))
    outside = upper_tail(-a) + upper_tail(b)
    if outside < 0.5:
        return math.log1p(-outside)
    return math.log(0.5 * (math.erf(ROOT_HALF * b) - math.erf(ROOT_HALF * a)))


@jit
def end_densities(f: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Normal density at the lower and at the upper end over the mass between, and the first less the second.

    The last is the derivative of `log_mass` in f; in the ends the derivatives are minus the first and the second. All
    are 0 for an empty interval.
    """
    width = upper - lower
    if width <= 0.0:
        return 0.0, 0.0, 0.0
    a, b = lower - f, upper - f
    turned = a + b < 0.0
    if turned:
        a, b = -b, -a
    # a is the end nearer to f (f may lie beyond it); the density at the other end is exp(-drop) times as large
    half = 0.5 * width
    drop = 2.0 * (a + half) * half
    if half <= 0.1 and drop <= 0.2:
        near = math.exp(0.5 * drop - 0.5 * half * half) / (width * (1.0 + narrow_series(a + half, half)))
    elif a >= FAR:
        near = -a * math.exp(-log_mills(a)) / math.expm1(log_tail_ratio(a, width))
    else:
        near = math.exp(-0.5 * a * a - LOG_ROOT_2PI - log_mass(f, lower, upper))
    far, slope = near * math.exp(-drop), -near * math.expm1(-drop)
    return (far, near, -slope) if turned else (near, far, slope)


@jit
def log_masses(f: Array, lower: Array, upper: Array) -> Array:
    """`log_mass` of every observation, shapes (N,)."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = log_mass(f[i], lower[i], upper[i])
    return out


@jit
def total_log_mass(f: Array, root: Array, lower: float, upper: float) -> float:
    """Sum over i of the `log_mass` of one interval under N(f_i, 1 / root_i^2); shapes (N,)."""
    total = 0.0
    for i in range(f.size):
        total += log_mass(root[i] * f[i], root[i] * lower, root[i] * upper)
    return total


@jit
def level_masses(f: Array, root: Array, cuts: Array) -> Array:
    """Probabilities (N, K) of the K intervals between the K - 1 cuts under N(f, 1 / root^2)."""
    out = np.empty((f.size, cuts.size + 1))
    for i in range(f.size):
        # the tail, left or right, beyond the lower end of interval k
        right, tail = False, 0.0
        for k in range(cuts.size):
            x = root[i] * (cuts[k] - f[i])
            if x <= 0.0:
                new = upper_tail(-x)
                out[i, k] = new - tail
            else:
                new = upper_tail(x)
                out[i, k] = tail - new if right else 1.0 - tail - new
                right = True
            tail = new
        out[i, cuts.size] = tail if right else 1.0 - tail
    return out


@jit
def by_level(f: Array, y: Array, levels: int) -> tuple[Array, Array]:
    """Sort f by level: the sorted copy (N,) and where every level starts (levels + 1,)."""
    start = np.zeros(levels + 1, dtype=np.int64)
    for i in range(y.size):
        start[y[i] + 1] += 1
    for k in range(levels):
        start[k + 1] += start[k]
    free = start.copy()
    out = np.empty(f.size)
    for i in range(y.size):
        out[free[y[i]]] = f[i]
        free[y[i]] += 1
    return out, start


@jit
def level_slopes(y: Array, f: Array, cuts: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Log probabilities of levels y (N,) in 0..K-1 under N(f, 1), their derivatives in f, and in the cuts summed up.

    Shapes (N,), (N,) and (K - 1,); ``weight`` (N,), or empty for ones, counts in the last alone.
    """
    logs, score, d_cuts = np.empty(f.size), np.empty(f.size), np.zeros(cuts.size)
    for i in range(f.size):
        k = int(y[i])
        lower = cuts[k - 1] if k > 0 else -np.inf
        upper = cuts[k] if k < cuts.size else np.inf
        logs[i] = log_mass(f[i], lower, upper)
        at_lower, at_upper, score[i] = end_densities(f[i], lower, upper)
        w = weight[i] if weight.size else 1.0
        if k > 0:
            d_cuts[k - 1] -= w * at_lower
        if k < cuts.size:
            d_cuts[k] += w * at_upper
    return logs, score, d_cuts
