"""The mode of an environment, for listeners to records in all partitions.

The chains of the two modes differ, though their numbers may be the same.
"""

from __future__ import annotations

from payments_core.storage.port import Storage
from payments_core.tenants.record import Environment


def is_of_mode(storage: Storage, partition: str, mode: str) -> bool:
    """Whether the partition is an environment of the mode."""
    environment = storage.read(partition, lambda snapshot: snapshot.get(Environment, partition))
    return environment is not None and environment.mode == mode
