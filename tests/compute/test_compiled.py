"""Functions that numba compiles when the first of them is called."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import count
from threading import Barrier

import pytest

from tuckergp.compute.compiled import Deferred, from_module

THREADS = 4
NUMBERS = count()

CODE = """
from tuckergp.compute.compiled import exact, jit

@jit
def double(x):
    return 2.0 * x

@exact
def double_and_one(x):
    return double(x) + 1.0
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that nobody has imported and numba has never seen."""
    name = f"never_compiled_{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module(name)


def test_a_compiled_function_calls_another_that_was_not_used_yet(module):
    stands_in = module.double_and_one
    assert isinstance(stands_in, Deferred)
    assert stands_in(3.0) == 7.0
    assert not any(isinstance(value, Deferred) for value in vars(module).values())
    assert stands_in(4.0) == 9.0  # who imported it earlier still has what stands in for it


def test_threads_that_call_first_at_the_same_time_get_one_function(module):
    stand_ins = [module.double, module.double_and_one] * (THREADS // 2)
    together = Barrier(THREADS)

    def ask(k):
        together.wait()
        return stand_ins[k].made

    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(ask, range(THREADS)))
    assert made[0] is made[2] is module.double
    assert made[1] is made[3] is module.double_and_one


def test_a_module_is_imported_when_one_of_its_names_is_used():
    assert from_module("fractions").Fraction(1, 2) == 0.5
    assert from_module("math", "sqrt")(4.0) == 2.0
    assert not hasattr(from_module("no_such_module"), "__wrapped__")  # asked by tools that look at all names
