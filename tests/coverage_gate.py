"""Holds the branch coverage that was promised: `python tests/coverage_gate.py coverage.json`.

The state machines, the journal, the judge and the weighing of evidence, and the storage adapters
are covered whole, lines and branches. A pattern that finds no file fails, or a renamed file would
pass.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WHOLE: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "coverage"
]["run"]["include"]
"""What is measured is what is held."""

APART = {
    "payments_core/storage/sqlite/backups.py": "a tool; what is left are races of its processes",
}
"""Files that a pattern finds and that are not held to it, and why."""


def main(report: str) -> int:
    measured = json.loads(Path(report).read_text(encoding="utf-8"))["files"]
    faults = []
    print("\nBranches that must be covered whole:")
    for pattern in WHOLE:
        found = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))
        paths = [path for path in found if path not in APART]
        if not paths:
            faults.append(f"{pattern} finds no file")
        for path in paths:
            entry = measured.get(path, {"summary": {}})
            figures = entry["summary"]
            taken, all_ = figures.get("covered_branches", 0), figures.get("num_branches", 0)
            note = (
                f"{figures['excluded_lines']} lines left out"
                if figures.get("excluded_lines")
                else ""
            )
            print(f"  {path:<48} {taken:>4} of {all_:<4} {note}".rstrip())
            if not figures:
                faults.append(f"{path} was not measured")
            for kind in ("lines", "branches"):
                if missing := entry.get(f"missing_{kind}"):
                    shown = ", ".join(map(str, missing[:10])) + (" …" if missing[10:] else "")
                    faults.append(f"{path} misses {len(missing)} {kind}: {shown}")
    for fault in faults:
        print(f"coverage: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
