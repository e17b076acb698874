"""Builds the wheel and the sdist, and runs both outside the checkout on each Python that there is.

    python -m tests.release_check             all Pythons from 3.11 that are found
    python -m tests.release_check 3.12        one of them

Each gets a clean venv in a folder of its own, where a Payment runs from start to end over HTTP.
The pinned dependencies of all extras must have wheels for each released Python, here or not: most
users have no compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "release"
OLDEST, RELEASED, NEWEST = 11, 15, 20
"""Minor versions: the oldest supported, the last released, and one that is not planned yet."""
NOT_IN_A_WHEEL = ("tests/", "docs/", "examples/", "benchmarks/")


def main(arguments: Sequence[str]) -> int:
    wheel, sdist = build()
    require_content(wheel, sdist)
    require_wheels(wheel)
    wanted = arguments or [f"3.{minor}" for minor in range(OLDEST, NEWEST)]
    pythons = {version: found for version in wanted if (found := find_python(version))}
    if not pythons:
        print(f"no Python of {', '.join(wanted)} was found", file=sys.stderr)
        return 1
    for version, python in pythons.items():
        for archive in (wheel, sdist):
            try_archive(python, archive)
            print(f"Python {version}: {archive.name} runs", flush=True)
    return 0


def build() -> tuple[Path, Path]:
    """The wheel and the sdist, built again with the pinned backend."""
    for old in BUILT.glob("*"):
        old.unlink()
    uv("build", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(BUILT))
    [wheel], [sdist] = BUILT.glob("*.whl"), BUILT.glob("*.tar.gz")
    return wheel, sdist


def require_content(wheel: Path, sdist: Path) -> None:
    """The wheel has what runs and nothing else; the sdist has the licence and the tests too."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    assert "payments_core/py.typed" in names and "payments_core_http/py.typed" in names
    assert any(name.endswith("reference/templates/error.html") for name in names)
    assert not [name for name in names if name.startswith(NOT_IN_A_WHEEL)]
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= inside


def require_wheels(wheel: Path) -> None:
    """Nothing needs to be compiled on a released Python."""
    pins = ("--constraint", str(ROOT / "constraints.txt"))
    own = f"payments-core[all] @ {wheel.as_uri()}"
    for minor in range(OLDEST, RELEASED + 1):
        version = f"3.{minor}"
        with tempfile.TemporaryDirectory() as folder:
            target = ("--target", folder, "--python-version", version)
            uv("pip", "install", "--quiet", "--dry-run", "--no-build", *target, *pins, own)
        print(f"Python {version}: all dependencies have wheels", flush=True)


def find_python(version: str) -> str | None:
    """An interpreter of a version on this machine: of the path, or one that pyenv keeps."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(map(str, pyenv.glob(f"{version}.*/bin/python{version}")))
    for python in (shutil.which(f"python{version}"), *kept):
        # A shim of pyenv is there for versions that are not chosen, and then fails.
        if python and run(python, "--version", folder="/", check=False).startswith("Python"):
            return python
    return None


def try_archive(python: str, archive: Path) -> None:
    """Install an archive into a clean venv, and run the demo from a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        uv("venv", "--quiet", "--python", python, f"{folder}/venv")
        pins = ("--constraint", str(ROOT / "constraints.txt"))
        own = f"payments-core[server] @ {archive.as_uri()}"
        uv("pip", "install", "--quiet", "--python", f"{folder}/venv/bin/python", *pins, own)
        place = run(f"{folder}/venv/bin/python", "-c", WHERE, folder=folder)
        assert place.startswith(f"{folder}/venv"), place
        run(f"{folder}/venv/bin/payments", "demo", "--json", folder=folder)


WHERE = "import payments_core, payments_core_http.app; print(payments_core.__file__)"


def uv(*arguments: str, check: bool = True) -> str:
    """Run uv in the checkout; what it prints."""
    return run(sys.executable, "-m", "uv", *arguments, folder=str(ROOT), check=check)


def run(*command: str, folder: str, check: bool = True) -> str:
    """Run a program without this checkout on its path; what it prints. Raises SystemExit."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
