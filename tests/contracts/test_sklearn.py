"""scikit-learn's own battery of estimator checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import TuckerGPRegressor
from tuckergp.inference import ALS
from tuckergp.model.tucker import SparseCore

ESTIMATORS = [
    # After some ten sweeps chains of thirty modes grow apart where sums are rounded differently, as those of weighted
    # and of repeated rows are.
    TuckerGPRegressor(draws=4, warmup=2),
    TuckerGPRegressor(inference="als"),
    TuckerGPRegressor(rank=2, core="identity", inference=ALS(noise=0.1, iterations=10)),
    TuckerGPRegressor(rank=2, core=SparseCore(2), inference=ALS(iterations=10)),
    TuckerGPRegressor(inference="sgd"),
]
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "mini-batches of repeated rows differ from those of weighted rows"
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED if estimator.inference == "sgd" else {}
)
def test_estimator_contract(estimator, check):
    check(estimator)
