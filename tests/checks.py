"""scikit-learn's checks: in full for four estimators, and what is done with data for the others.

What an estimator says of its options, how it is cloned and pickled, is written once for all.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

DATA = (
    "check_class_weight",
    "check_classifiers_",
    "check_complex_data",
    "check_dtype_object",
    "check_estimator_sparse",
    "check_estimators_dtypes",
    "check_estimators_empty_data",
    "check_estimators_nan_inf",
    "check_estimators_partial_fit",
    "check_f_contiguous",
    "check_fit1d",
    "check_fit2d",
    "check_methods_",
    "check_n_features_in",
    "check_positive_only",
    "check_sample_weight",
    "check_supervised_y",
)


def data_checks(estimators, expected_failed_checks):
    """Those of scikit-learn's checks that give an estimator data of one kind or another."""
    cases = []
    for estimator in estimators:
        expected = expected_failed_checks(estimator)
        for each, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            if name.startswith(DATA):
                mark = pytest.mark.xfail(reason=expected[name]) if name in expected else ()
                kind = type(each).__name__
                cases.append(pytest.param(each, check, marks=mark, id=f"{kind}-{name}"))
    return pytest.mark.parametrize("estimator, check", cases)
