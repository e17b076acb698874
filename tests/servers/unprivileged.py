"""Running PostgreSQL's programs as somebody who is not root, which they refuse to be.

That user may not be able to enter the folders of root, a virtual environment for example. Then
what is needed is copied to where he can; nobody's folders change their permissions.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import attrs

from tests.servers.programs import NEEDED, NoPostgres, Programs

LONGEST_PLACE = 80  # a socket's path holds 107 bytes, and ours adds 26
NOT_COPIED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include", "locale", "man", "doc")


@cache
def server_user() -> pwd.struct_passwd | None:
    """Whom to run servers as; None where we are not root and are good enough ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("PostgreSQL refuses to run as root, and there is no other user")


def run(*command: str | Path, check: bool = True) -> bool:
    """Run a program as that user and say whether it succeeded.

    Its output goes to a file: a server that `pg_ctl` starts would hold a pipe open forever.
    """
    user = server_user()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(part) for part in command],
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
            cwd="/",
            env=kept,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
        output.seek(0)
        said = output.read().decode(errors="replace")
    if check and done.returncode != 0:
        raise NoPostgres(f"{Path(command[0]).name} failed: {said.strip()}")
    return done.returncode == 0


def own(*places: Path) -> None:
    """Give files to that user."""
    user = server_user()
    if user is None:
        return
    for place in places:
        os.chown(place, user.pw_uid, user.pw_gid)


def new_folder(prefix: str) -> Path:
    """A private folder of that user's, in a place that he can enter and sockets can lie in."""
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if len(place) <= LONGEST_PLACE and may("-x", Path(place)):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            own(folder)
            return folder
    raise NoPostgres(f"{server_user()} can enter no temporary folder")


@cache
def usable(programs: Programs) -> Programs:
    """The same programs where that user can run them: in their place, or copied."""
    root = programs.folder.parent
    data = next(root.glob("share/**/postgres.bki"), None)
    if may("-x", programs.folder / "postgres") and (data is None or may("-r", data)):
        return programs
    copy = new_folder("pgbin")
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copied = _copy(root, copy)
    for place in copy.rglob("*"):
        own(place)
        place.chmod(0o700 if place.is_dir() or place.parent.name == "bin" else 0o600)
    return attrs.evolve(programs, folder=copied / "bin")


def _copy(root: Path, copy: Path) -> Path:
    """A wheel's programs look for libraries in a folder beside their package, as it lies here."""
    package = root.parent
    copied = copy / package.name / root.name
    (copied / "bin").mkdir(parents=True)
    for name in NEEDED:
        shutil.copy2(root / "bin" / name, copied / "bin" / name)
    for part in ("lib", "share"):
        if (root / part).is_dir():
            shutil.copytree(root / part, copied / part, ignore=NOT_COPIED)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name)
    return copied


def may(how: str, place: Path) -> bool:
    """Whether that user can read (`-r`) a file, or run or enter (`-x`) it."""
    return run("/usr/bin/env", "test", how, place, check=False)
