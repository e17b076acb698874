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
