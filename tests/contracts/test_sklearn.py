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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks([TuckerGPRegressor(), TuckerGPRegressor(inference="als")])
def test_estimator_contract_at_the_defaults(estimator, check):
    check(estimator)
