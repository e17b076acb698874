"""Opening a storage by its URL: adapters are found by the entry-point group below.

Another distribution adds an adapter by declaring `its_scheme = "its.module:open_url"` there,
where `open_url` is called with the URL and the kinds of records, and returns a Storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from payments_core.storage.port import Storage
from payments_core.storage.records import Record

GROUP = "payments_core.storage"


class UnknownStorage(ValueError):
    """No installed adapter serves this scheme."""

    def __init__(self, scheme: str, installed: Sequence[str]) -> None:
        super().__init__(
            f"no storage adapter for {scheme!r}; installed are {', '.join(installed)}"
            " (a file is opened as sqlite:///name.db)"
        )
        self.scheme = scheme
        self.installed = tuple(installed)


def open_storage(url: str, kinds: Sequence[type[Record]] | None = None) -> Storage:
    """The storage that a URL such as `sqlite:///payments.db` names; `memory:` is one too.

    `kinds` are the kinds of records that it will hold, the service's own unless given.
    Raises UnknownStorage for a scheme that no adapter serves, ImportError where an adapter's
    driver is not installed, and what the adapter raises for a URL that it cannot read.
    """
    if kinds is None:
        from payments_core.kinds import KINDS  # what they are made of imports this package

        kinds = KINDS
    scheme = url.partition(":")[0]
    found = entry_points(group=GROUP)
    if scheme not in found.names:
        raise UnknownStorage(scheme, sorted(found.names))
    open_url: Callable[[str, Sequence[type[Record]]], Storage] = found[scheme].load()
    return open_url(url, kinds)
