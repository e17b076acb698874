"""Opening a storage by its URL: adapters are found by the entry-point group below.

An adapter's `open_url` is called with the URL, the kinds of records, and a keyword: `waits`, where
the waits of its threads are announced. It returns a Storage.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from payments_core.waiting import NO_WAITS, Waits

GROUP = "payments_core.storage"


def open_storage(
    url: str, record_types: Sequence[type[Record]] | None = None, *, waits: Waits = NO_WAITS
) -> Storage:
    """The storage at a URL, for example `sqlite:///payments.db` or `memory:`.

    `record_types` are the kinds of records that it will hold, by default the service's own. `waits`
    belongs to the server whose threads use the storage.
    Raises UnknownAdapter for a scheme that no adapter serves, ImportError if an adapter's
    driver is not installed, ValueError if the adapter opens no storage, and the adapter's own
    errors for a URL that it cannot read.
    """
    if record_types is None:
        from payments_core.record_types import (
            RECORD_TYPES,  # their modules import this package
        )

        record_types = RECORD_TYPES
    scheme, hint = scheme_of(url), " (a file is opened as sqlite:///name.db)"
    open_url = load_adapter(GROUP, scheme, "storage adapter", hint)
    opened: Storage = open_url(url, record_types, waits=waits)
    require_port(opened, Storage, scheme, "storage adapter")
    return opened
