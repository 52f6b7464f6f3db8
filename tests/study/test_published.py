import pytest

from safetydrift.evaluation.rate import Rate
from safetydrift.study import published


def test_printed_counts_add_up():
    assert sum(category.runs for category in published.CATEGORIES.values()) == published.RUNS
    assert published.TRAINING_RUNS + published.TEST_RUNS == published.RUNS
    assert max(published.LEARNING_CURVE) == published.RUNS


def test_printed_intervals_are_those_of_the_counts_they_fit():
    monitor = published.MONITORS["SafetyDrift"]
    for rate, value, interval in (
        (Rate(36, 38), monitor.detection, monitor.detection_interval),
        (Rate(4, 34), monitor.false_positives, monitor.false_positives_interval),
    ):
        assert rate.value == pytest.approx(value, abs=0.0005)
        assert rate.interval() == pytest.approx(interval, abs=0.006)


def test_every_share_is_one():
    shares = [order.accuracy for order in published.ORDERS.values()]
    shares += [*published.ABLATION.values(), *published.OPERATING_REGION]
    shares += [rate for model in published.MODELS.values() for rate in model.violated.values()]
    shares += [model.mild_to_violated for model in published.MODELS.values()]
    assert all(0.0 <= share <= 1.0 for share in shares)
