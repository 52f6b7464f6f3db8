"""Fixtures for tests that run Inspect."""

import gc

import pytest


@pytest.fixture
def settled():
    """Let what Inspect leaves unclosed be collected while the test that made it is still on."""
    yield
    gc.collect()
