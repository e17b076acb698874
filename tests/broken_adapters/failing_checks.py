"""One check of a conformance suite, run by hand on an adapter."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Protocol


class Suite(Protocol):
    """A suite with its adapter."""

    def setup_method(self) -> None: ...

    def teardown_method(self) -> None: ...


def failures(suite: Suite, check: str) -> Iterator[BaseException]:
    """What the check raises on the suite's adapter."""
    suite.setup_method()
    try:
        getattr(suite, f"test_{check}")()
    except unittest.SkipTest:
        raise
    except Exception as error:
        yield error
    finally:
        suite.teardown_method()


def checks_of(conformance: type) -> set[str]:
    """The names of a suite's checks, without `test_`."""
    return {name.removeprefix("test_") for name in dir(conformance) if "test_" in name}


class RemoteBooks(Protocol):
    """The books of a broken service."""

    loses_answer: bool
    down: bool


class RemoteSuite:
    """Loses answers and fails as its books say."""

    can_lose_answers = True
    can_fail = True
    books: RemoteBooks

    def lose_next_answer(self) -> None:
        self.books.loses_answer = True

    def fail(self) -> None:
        self.books.down = True

    def restore(self) -> None:
        self.books.down = False
