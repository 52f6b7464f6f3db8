import os

import numpy as np
import pytest
from tests.evaluation.made_cases import by_position, fixed, many, oracle

from safetydrift.errors import LeakageError
from safetydrift.evaluation.comparison import compare
from safetydrift.evaluation.workers import Workers


def add(shared, number):
    return shared["base"] + number


def whoami(_shared):
    return os.getpid()


def leak(_shared):
    raise LeakageError("task", (("a", "b", "c"),), "somebody")


@pytest.mark.parametrize("processes", [1, 2])
def test_work_sees_what_is_shared_and_comes_back_in_order(processes):
    with Workers({"base": 10}, processes) as workers:
        results = [workers.submit(add, number) for number in range(5)]
        assert [result() for result in results] == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_arrives_as_it_was_raised(processes):
    with pytest.raises(LeakageError) as here:
        leak(None)
    with Workers(None, processes) as workers, pytest.raises(LeakageError) as there:
        workers.submit(leak)()
    assert str(there.value) == str(here.value)
    assert vars(there.value) == vars(here.value)


def test_several_processes_are_other_processes():
    with Workers(None, 2) as workers:
        assert workers.submit(whoami)() != os.getpid()
    with Workers(None, 1) as workers:
        assert workers.submit(whoami)() == os.getpid()


def test_one_comparison_within_another_keeps_its_own_runs():
    with Workers({"base": 1}, 2) as outer:
        first = outer.submit(add, 1)()
        with Workers({"base": 5}, 2) as inner:
            assert inner.submit(add, 1)() == 6
        assert (first, outer.submit(add, 2)()) == (2, 3)


def test_the_result_does_not_depend_on_the_number_of_processes():
    cases = many(np.random.default_rng(5), 30, 6, lambda task: 0.2 + 0.5 * (task % 2))
    predictors = [fixed("noise", by_position), fixed("oracle", oracle, alarm_at=0.5)]

    def figures(processes):
        compared = compare(predictors, cases, n_resamples=20, processes=processes, reference="noise")
        return {
            (one.name, name): (figure.value, figure.interval())
            for one in compared.splits[0].predictors
            for name, figure in one.measures.figures().items()
        }

    assert str(figures(1)) == str(figures(2))
