"""What the features of a mode do not explain, E in psi = Phi B + E: one residual in each file."""

from tuckergp.residuals.base import Residual
from tuckergp.residuals.field import Field
from tuckergp.residuals.line import Line
from tuckergp.residuals.line_sum import LineSum
from tuckergp.residuals.none import NoResidual
from tuckergp.residuals.rows import Rows

__all__ = ["RESIDUALS", "Field", "Line", "LineSum", "NoResidual", "Residual", "Rows"]

RESIDUALS: tuple[type[Residual], ...] = (NoResidual, Rows, Line, LineSum, Field)
