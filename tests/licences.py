"""Prints the licence of each component of a bill of materials, and fails where one has none, or
where the bill is not what the environment has installed, name by name and version by version.

python -m tests.licences build/sbom.json build/runtime
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from docs.markdown import table

REFUSED = ("AGPL", "GPL-3", "GPL-2", "SSPL")
"""What a user of the library could not take along; the lesser GPL is not such a licence."""


DECLARED_AS_TEXT = {"protobuf": "BSD-3-Clause", "sqlite-fts4": "Apache-2.0"}
"""What the metadata of these say in words, which the bill of materials has no place for."""


def main(arguments: list[str]) -> int:
    file, environment = map(Path, arguments)
    bill = json.loads(file.read_text(encoding="utf-8"))
    components = bill["components"]
    found = {one["name"]: (one["version"], sorted(set(_licences_of(one)))) for one in components}
    print("# Licences\n")
    rows = ((name, version, ", ".join(words)) for name, (version, words) in sorted(found.items()))
    print(table(("Package", "Version", "Licence"), rows))
    faults = [name for name, (_, words) in found.items() if not words or _is_refused(words)]
    if faults:
        print(
            f"without a licence, or with one that is refused: {', '.join(faults)}", file=sys.stderr
        )
    listed = {_name_of(one) for one in [*components, bill["metadata"]["component"]]}
    differing = listed ^ set(_find_installed(environment))
    if differing:
        print(f"in the bill or installed, and not both: {sorted(differing)}", file=sys.stderr)
    return bool(faults or differing)


def _find_installed(environment: Path) -> Iterator[tuple[str, str]]:
    """The name and version of each package of an environment, as its files say them."""
    folders = [str(folder) for folder in environment.glob("lib/python3*/site-packages")]
    for installed in distributions(path=folders):
        yield _name_of({"name": installed.metadata["Name"], "version": installed.version})


def _name_of(component: Mapping[str, Any]) -> tuple[str, str]:
    return re.sub("[-_.]+", "-", component["name"]).lower(), component["version"]


def _licences_of(component: Mapping[str, Any]) -> Iterator[str]:
    if not component.get("licenses") and component["name"] in DECLARED_AS_TEXT:
        yield DECLARED_AS_TEXT[component["name"]]
    for entry in component.get("licenses", ()):
        if "expression" in entry:
            yield entry["expression"]
        else:
            licence = entry["license"]
            yield licence.get("id") or licence["name"]


def _is_refused(words: list[str]) -> bool:
    return all(any(bad in word and "LGPL" not in word for bad in REFUSED) for word in words)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
