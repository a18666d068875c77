"""The interface of feature maps: fit to the inputs of a mode and a kernel, then turn inputs into rows of features.

No approximation is here, only the interface and the handling of dense and sparse blocks.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.columns import as_inputs
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.features.new import NewFeatures
from tuckergp.kernels import Kernel
from tuckergp.params import Parametrised
from tuckergp.residuals.base import Residual

__all__ = ["FeatureMap", "Features", "Floats", "RandomState", "ResidualMap", "Shapes", "hstack", "vstack"]

Floats: TypeAlias = npt.NDArray[np.float64]
Features: TypeAlias = Floats | sparse.csr_array
Shapes: TypeAlias = dict[str, tuple[int, ...]]
RandomState: TypeAlias = int | np.random.Generator | None


class FeatureMap(Parametrised):
    """Features phi of one mode, with phi(x)'phi(x') equal or close to k(x, x').

    The constructor only stores parameters, so one description can be used for several kernels; what `fit` learns ends
    in an underscore. Subclasses write `_fit`, which sets `n_features_`, and `_transform`.

    Attributes
    ----------
    kernel_ : Kernel
        A copy of the kernel it was fitted to.
    n_features_ : int
    feature_names_ : list of str
        ``occupation=doctor`` where a feature has a meaning, else the kernel and a number.
    """

    kernel_: Kernel
    n_features_: int
    feature_names_: list[str]

    def fit(self, X: Any, kernel: Kernel, random_state: RandomState = None) -> Self:
        """Learn the map from the inputs X, a table or an array of shape (n, p), n > 0."""
        table = as_inputs(X)
        if len(table) == 0:
            raise InputError(f"{self!r} needs at least one row to be fitted to.")
        self.kernel_ = copy.deepcopy(kernel)
        self.feature_names_ = []
        self._fit(table, self.kernel_, np.random.default_rng(random_state))
        if not self.feature_names_:
            self.feature_names_ = [f"{kernel!r}[{j}]" for j in range(self.n_features_)]
        return self

    def transform(self, X: Any) -> Features:
        """Features of inputs, seen in `fit` or not, dense or CSR of shape (n, n_features_)."""
        if not hasattr(self, "n_features_"):
            raise InputError(f"{self!r} is not fitted yet; call fit with inputs and a kernel first.")
        return self._transform(as_inputs(X))

    def new_features(self, X: Any, joint: bool = True) -> NewFeatures | None:
        """What the kernel has at inputs and the features leave out, as further features; None for nothing.

        Levels never seen, or the variance that no pivot explains. Where that is correlated between inputs, ``joint``
        keeps the correlations, in groups as large as memory allows; otherwise the features of an input do not depend
        on which others there are.
        """
        return self._new_features(as_inputs(X), joint)

    def doubt(self, X: Any) -> str | None:
        """Why the features cannot carry the kernel at inputs like these, and what to do; None where they can."""
        return self._doubt(as_inputs(X))

    def fit_transform(self, X: Any, kernel: Kernel, random_state: RandomState = None) -> Features:
        """Fit, then the features of the same inputs, shape (n, n_features_)."""
        return self.fit(X, kernel, random_state).transform(X)

    def gram(self, X: Any, Y: Any = None) -> Floats:
        """The kernel that the features stand for, phi(x)'phi(y), shape (n, m)."""
        phi = self.transform(X)
        product = phi @ (phi if Y is None else self.transform(Y)).T
        return product.toarray() if sparse.issparse(product) else np.asarray(product)

    @property
    def blocks_(self) -> list[slice]:
        """The columns of each term of the kernel; one block unless it is a sum."""
        return [slice(0, self.n_features_)]

    def unfitted(self) -> Self:
        """The same description, without what was learned."""
        return type(self)(**self.get_params(deep=False))

    def suits(self, kernel: Kernel) -> bool:
        """Whether this map is a natural choice for a kernel that is neither a sum nor scaled."""
        raise NotImplementedError

    def fault(self) -> str | None:
        """What is wrong with what it learned, where a file that was edited holds it; None for nothing."""
        return None

    def _fit(self, table: Table, kernel: Kernel, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _transform(self, table: Table) -> Features:
        raise NotImplementedError

    def _new_features(self, table: Table, joint: bool) -> NewFeatures | None:
        return None

    def _doubt(self, table: Table) -> str | None:
        return None


class ResidualMap(FeatureMap):
    """Marks a term as the residual of its mode, which is what the features of the other terms do not explain.

    It has no features. `tuckergp.Mode` chooses a mark by itself; a mark that the user names must be possible.

    Class attributes
    ----------------
    in_weight_space : bool
        Whether inference that learns only weights of features can learn it.
    """

    in_weight_space: ClassVar[bool]

    def serves(self, kernel: Kernel, table: Table) -> bool:
        """Whether a term can be the residual at these distinct inputs of a mode."""
        raise NotImplementedError

    def joins(self, kernel: Kernel, other: Kernel, table: Table) -> bool:
        """Whether another term can be part of the residual that a term is."""
        return False

    def summed(self, parts: Sequence[Any]) -> ResidualMap:
        """The mark of a residual that is a sum of terms with these marks."""
        raise TypeError(f"a {type(self).__name__} is one term")

    def at(self, table: Table, sd: float) -> Residual:
        """The residual at the rows of a table, with this standard deviation."""
        raise NotImplementedError

    @property
    def n_groups(self) -> int:
        """How many training rows may have noise factors."""
        return 0

    def kept(self, r: int) -> tuple[Shapes, Shapes]:
        """The shapes of what `Residual.kept` gives at rank r: of all training rows, (M_train, ...), and of the mode."""
        raise NotImplementedError

    def of_rows(self, table: Table) -> Self:
        """The same mark for other training rows, those of ``table``."""
        raise TypeError(f"a {type(self).__name__} learns from all rows together")

    def refusal(self, term: Kernel, mode: str) -> str:
        """The message for a term that the user marked but that cannot be the residual of its mode."""
        raise NotImplementedError

    def _transform(self, table: Table) -> Features:
        return np.zeros((len(table), 0))


def hstack(blocks: Sequence[Features]) -> Features:
    """Blocks side by side: dense where all are, else CSR."""
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr"))
    return np.hstack([np.asarray(block) for block in blocks])


def vstack(blocks: Sequence[Features]) -> Features:
    """Blocks one above the other: dense where all are, else CSR."""
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr"))
    return np.vstack([np.asarray(block) for block in blocks])
