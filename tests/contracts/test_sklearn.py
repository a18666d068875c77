"""scikit-learn's own battery of estimator checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import TuckerGPRegressor
from tuckergp.inference import ALS
from tuckergp.model import SparseCore

ESTIMATORS = [
    TuckerGPRegressor(draws=30, warmup=30),
    TuckerGPRegressor(inference="als"),
    TuckerGPRegressor(rank=2, core="identity", inference=ALS(noise=0.1, iterations=10)),
    TuckerGPRegressor(rank=2, core=SparseCore(2), inference="als"),
    TuckerGPRegressor(inference="sgd"),
]


WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "mini-batches of repeated rows differ from those of weighted rows"
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: WEIGHTS if estimator.inference == "sgd" else {}
)
def test_estimator_contract(estimator, check):
    check(estimator)
