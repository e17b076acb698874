"""Packages from npm, each in a folder of the user's cache. Only sandbox and tests need them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

INSTALL_TIMEOUT_S = 300


class PackageNotCached(Exception):
    """Why a package is not available."""


def ensure_npm_package(package: str, version: str) -> Path:
    """The `node_modules` with exactly this version of a package, fetched at the first call.

    Several processes may call at once. Raises PackageNotCached.
    """
    folder = cache_folder() / f"{package.rpartition('/')[2]}-{version}"
    if not folder.is_dir():
        _fetch(f"{package}@{version}", folder)
    return folder / "node_modules"


def cache_folder() -> Path:
    """The folder of fetched packages."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "payments-core"


def _fetch(package: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PackageNotCached(
            f"npm is not installed to fetch {package}, and {folder} does not exist"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise PackageNotCached(f"{folder.parent} cannot be written: {error.strerror}") from error
    try:
        _install(npm, package, made)
        # The first process to finish gives the folder its name, so that nobody sees half of one.
        made.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise PackageNotCached(f"{package} could not be installed in {folder}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _install(npm: str, package: str, folder: Path) -> None:
    # The peers of a package are for those who build on it; we take files out of it.
    options = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps")
    command = [npm, "i", "--prefix", str(folder), *options, package]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PackageNotCached(
            f"npm took more than {INSTALL_TIMEOUT_S} s to install {package}"
        ) from None
    if done.returncode:  # npm's own message may contain a registry's address, with credentials
        raise PackageNotCached(
            f"npm could not install {package}; `npm i --no-save {package}` shows the reason"
        )
