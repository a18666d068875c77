"""scikit-learn's own battery of estimator checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckergp import TuckerGPRegressor
from tuckergp.inference import ALS
from tuckergp.model.tucker import SparseCore

ESTIMATORS = [
    TuckerGPRegressor(rank=2, draws=3, warmup=3),
    TuckerGPRegressor(rank=2, core="identity", inference=ALS(noise=0.1, iterations=10)),
    TuckerGPRegressor(rank=2, core=SparseCore(2), inference=ALS(iterations=10)),
    TuckerGPRegressor(inference="sgd"),
]
EXPECTED = {"sgd": "mini-batches of repeated rows differ from those of weighted rows"}


def expected_to_fail(estimator):
    reason = EXPECTED.get(estimator.inference) if isinstance(estimator.inference, str) else None
    return {} if reason is None else {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_to_fail)
def test_estimator_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks([TuckerGPRegressor(inference="als")])
def test_estimator_contract_with_a_search_for_the_prior_scale(estimator, check):
    check(estimator)
