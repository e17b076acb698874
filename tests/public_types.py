"""Holds the types of the public API complete, as pyright sees them: `make public-types`.

    python -m tests.public_types             the public packages, one minute; needs Node.js

pyright completes what a program of a stranger needs, where mypy checks what ours do: an attribute
whose type two checkers could infer differently counts as one without a type. What is only for our
own command line and server is left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGES = ("payments_core", "payments_core_http")
NOT_PUBLIC = (
    "payments_core_http.cli.",
    "payments_core_http.server.",
    "payments_core_http.v2.sandbox.bodies.Transfer",  # made by a call, since a field is `from`
)


def main() -> int:
    """Print what is incomplete; 0 or 1."""
    if shutil.which("node") is None:
        print("pyright needs Node.js, and no `node` was found", file=sys.stderr)
        return 1
    incomplete = []
    for package in PACKAGES:
        report = verify(package)
        found = list(find_incomplete(report))
        counts = report["typeCompleteness"]["exportedSymbolCounts"]
        print(f"{package}: {sum(counts.values())} names, {len(found)} public without a known type")
        incomplete += found
    for line in incomplete:
        print(line, file=sys.stderr)
    return 1 if incomplete else 0


def verify(package: str) -> Mapping[str, Any]:
    """pyright's report on an installed package. It takes one in its own folder for a program."""
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    command = ("--outputjson", "--ignoreexternal", "--verifytypes", package)
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-m", "pyright", *command],
            cwd=elsewhere, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout)
    if not report["typeCompleteness"]["symbols"]:
        raise SystemExit(f"pyright found nothing in {package}:\n{done.stdout}{done.stderr}")
    return report


def find_incomplete(report: Mapping[str, Any]) -> Iterator[str]:
    """Each public name whose type is not known, with what pyright says of it."""
    for symbol in report["typeCompleteness"]["symbols"]:
        known = symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]
        if symbol["isExported"] and not known and not symbol["name"].startswith(NOT_PUBLIC):
            said = [one["message"].partition("\n")[0] for one in symbol["diagnostics"]]
            yield f"{symbol['name']}: {'; '.join(said) or 'made of such types'}"


if __name__ == "__main__":
    raise SystemExit(main())
