"""Shared by the suites of remote services: services that lose answers or fail."""

from __future__ import annotations


class RemoteHarness:
    """Override the hooks, and declare what the adapter can do.

    A check of something undeclared is skipped, and the skip is reported.
    """

    can_lose_answers: bool = False
    """`lose_next_answer` works."""

    can_fail: bool = False
    """`fail` and `restore` work."""

    def lose_next_answer(self) -> None:
        """Let the service carry out the next request, and its answer be lost."""
        raise NotImplementedError  # the adapter's own test class says how

    def fail(self) -> None:
        """Let the service stop answering, and do nothing."""
        raise NotImplementedError  # the adapter's own test class says how

    def restore(self) -> None:
        """Undo `fail`."""
        raise NotImplementedError  # the adapter's own test class says how

    # Called by a test runner around each check.

    def setup_method(self) -> None:
        """Before each check."""

    def teardown_method(self) -> None:
        """After each check."""
