"""Fixtures of the hostile clients: two servers that outlive many tests, looked at after each."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.hostile.target import Target, serving

DESCRIPTORS = 8_000


@pytest.fixture(autouse=True, scope="session")
def _proc() -> None:
    """What a process holds is read from Linux."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc")


@pytest.fixture(scope="session")
def _many_descriptors() -> Iterator[None]:
    """Thousands of clients in one process need more than many a shell allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="session")
def _usual(_many_descriptors: None) -> Iterator[Target]:
    with serving() as target:
        yield target


@pytest.fixture(scope="session")
def _hasty(_many_descriptors: None) -> Iterator[Target]:
    with serving(idle_s=1, request_s=0.5, answer_s=1, linger_s=0.3) as target:
        yield target


@pytest.fixture
def target(_usual: Target) -> Iterator[Target]:
    """The server as it is deployed."""
    yield _usual
    _usual.require_calm()


@pytest.fixture
def hasty(_hasty: Target) -> Iterator[Target]:
    """The server with times that a test can wait for."""
    yield _hasty
    _hasty.require_calm()
