"""Opening a limiter by its URL: adapters are found by the entry-point group below.

Another distribution adds an adapter by declaring `its_scheme = "its.module:open_url"` there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from payments_core.limiters.port import Limiter

GROUP = "payments_core.limiters"


class UnknownLimiter(ValueError):
    """No installed adapter serves this scheme."""

    def __init__(self, scheme: str, installed: Sequence[str]) -> None:
        super().__init__(f"no limiter for {scheme!r}; installed are {', '.join(installed)}")
        self.scheme = scheme
        self.installed = tuple(installed)


def open_limiter(url: str) -> Limiter:
    """The limiter that a URL names: `memory:`, or a Redis such as `redis://localhost/0`.

    Raises UnknownLimiter for a scheme that no adapter serves, ImportError where an adapter's
    driver is not installed, and ValueError for a URL that the adapter cannot read.
    """
    scheme, colon, _ = url.partition(":")
    if not colon:
        scheme = ""  # whatever this is, it may be a secret
    found = entry_points(group=GROUP)
    if scheme not in found.names:
        raise UnknownLimiter(scheme, sorted(found.names))
    open_url: Callable[[str], Limiter] = found[scheme].load()
    return open_url(url)
