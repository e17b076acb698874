"""Adapters that a test installs, as another distribution would: found by their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, adapters: Mapping[str, str]
) -> None:
    """A module of this source; `adapters` has its functions by `group:scheme`.

    Processes that the test starts find it too.
    """
    name = f"installed_{abs(hash((source, str(folder))))}"
    (folder / f"{name}.py").write_text(source)
    described = folder / f"{name}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups: dict[str, list[str]] = {}
    for place, function in adapters.items():
        group, _, scheme = place.partition(":")
        groups.setdefault(group, []).append(f"{scheme} = {name}:{function}")
    (described / "entry_points.txt").write_text(
        "\n".join(f"[payments_core.{group}]\n" + "\n".join(them) for group, them in groups.items())
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
