"""Prints the licence of each component of a bill of materials, and fails where one has none.

python -m tests.licences build/sbom.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.markdown import table

REFUSED = ("AGPL", "GPL-3", "GPL-2", "SSPL")
"""What a user of the library could not take along; the lesser GPL is no such licence."""


DECLARED_AS_TEXT = {"protobuf": "BSD-3-Clause", "sqlite-fts4": "Apache-2.0"}
"""What the metadata of these say in words, which the bill of materials has no place for."""


def main(arguments: list[str]) -> int:
    [file] = arguments
    components = json.loads(Path(file).read_text(encoding="utf-8"))["components"]
    found = {one["name"]: (one["version"], sorted(set(_licences_of(one)))) for one in components}
    print("# Licences\n")
    rows = ((name, version, ", ".join(words)) for name, (version, words) in sorted(found.items()))
    print(table(("Package", "Version", "Licence"), rows))
    faults = [name for name, (_, words) in found.items() if not words or _is_refused(words)]
    if faults:
        print(
            f"without a licence, or with one that is refused: {', '.join(faults)}", file=sys.stderr
        )
    return bool(faults)


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
