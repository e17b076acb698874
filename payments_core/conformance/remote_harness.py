"""What suites of adapters to remote services have in common: services that lose answers or fail."""

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
        """Let the service do what it is asked next, and its answer be lost."""
        raise NotImplementedError  # the adapter's own test class says how

    def fail(self) -> None:
        """Let the service answer nothing more, and do nothing."""
        raise NotImplementedError  # the adapter's own test class says how

    def restore(self) -> None:
        """Undo `fail`."""
        raise NotImplementedError  # the adapter's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""

    def teardown_method(self) -> None:
        """After each check."""
