"""Fixtures for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Machines that run tests are busy; how long an example takes says nothing about the code. The same examples are drawn
# in every run, so that a failure is one of the change at hand; `make test-long` draws others (--hypothesis-profile).
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("ci")

EXIT_TIMEOUT = 300
"""Seconds that a process which ran half of the tests may take to leave: what it measured is lost if it is killed."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the processes of pytest-xdist the time that they need to leave."""
    if config.pluginmanager.hasplugin("xdist"):
        from xdist.workermanage import NodeManager  # noqa: PLC0415  # where tests run in one process, nobody leaves

        NodeManager.EXIT_TIMEOUT = EXIT_TIMEOUT


SHARED = Path(__file__).parents[2] / "shared" / "traces"


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The raw traces beside the checkout; with CI=true their absence is a failure, elsewhere a skip."""
    if not SHARED.is_dir():
        reason = "the raw traces are not beside this checkout (../shared/traces)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return SHARED
