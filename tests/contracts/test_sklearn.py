"""scikit-learn's own battery of estimator checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import TuckerGPRegressor
from tuckergp.inference import ALS
from tuckergp.model.tucker import SparseCore

ESTIMATORS = [
    TuckerGPRegressor(draws=10, warmup=10),
    TuckerGPRegressor(inference="als"),
    TuckerGPRegressor(rank=2, core="identity", inference=ALS(noise=0.1, iterations=10)),
    TuckerGPRegressor(rank=2, core=SparseCore(2), inference="als"),
    TuckerGPRegressor(inference="sgd"),
]


CHECK = "check_sample_weight_equivalence_on_dense_data"
REASONS = {
    "sgd": "mini-batches of repeated rows differ from those of weighted rows",
    "gibbs": "sums are rounded differently, and chains of thirty modes with 1,771 entries of the core grow apart; "
    "tests/model/test_cores.py compares fewer",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(
    ESTIMATORS,
    expected_failed_checks=lambda estimator: (
        {CHECK: REASONS[estimator.inference]} if estimator.inference in ("sgd", "gibbs") else {}
    ),
)
def test_estimator_contract(estimator, check):
    check(estimator)
