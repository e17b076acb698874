"""Writes the pages of docs/reference that are printed from tables in the code.

    python -m docs.generate            write them
    python -m docs.generate --check    fail, and name the pages, when they differ from the code

A new page is a function that returns Markdown and a row in `PAGES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from payments_core.events import CATALOGUE
from payments_core.funding.lifecycle import FUNDING_OPERATION
from payments_core.options.lifecycle import OPTION, SELECTION
from payments_core.payments.lifecycle import PAYMENT
from payments_core.transitions import Machine
from payments_core.webhooks.lifecycle import DELIVERY, ENDPOINT

REFERENCE = Path(__file__).parent / "reference"

MACHINES: tuple[Machine, ...] = (
    PAYMENT,
    OPTION,
    SELECTION,
    FUNDING_OPERATION,
    ENDPOINT,
    DELIVERY,
)


def state_machines() -> str:
    """Each transition table as a diagram and as rows."""
    parts = [
        "# State machines",
        "Each table is the one that the code steps through, and an absent row means refused.\n"
        "The event is written by the same commit as the change.",
    ]
    for machine in MACHINES:
        rows = (
            (
                code(row.source) if row.source else "–",
                row.trigger,
                code(row.target),
                code(row.emits) if row.emits else "–",
                code(row.label) if row.label else "–",
                row.why,
            )
            for row in machine.transitions
        )
        parts += [
            f"## {machine.name}",
            diagram(machine),
            table(("From", "Trigger", "To", "Event", "Label", "Why"), rows),
        ]
    return "\n\n".join(parts)


def diagram(machine: Machine) -> str:
    """A Mermaid state diagram."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [
        f"    {row.source or '[*]'} --> {row.target}: {row.trigger}" for row in machine.transitions
    ]
    lines += [f"    {state} --> [*]" for state in sorted(machine.terminal)]
    return "\n".join([*lines, "```"])


def events() -> str:
    """The event catalogue."""
    return "\n\n".join(
        (
            "# Events",
            "Every event an endpoint can subscribe to, with the fields of its payload.\n"
            "Those that this release does not send yet can be subscribed to all the same.",
            table(
                ("Event", "Sent", "Meaning", "Fields"),
                (
                    (
                        code(event.name),
                        "yes" if event.emitted else "not yet",
                        event.meaning,
                        ", ".join(code(f) for f in event.fields),
                    )
                    for event in CATALOGUE
                ),
            ),
        )
    )


PAGES: dict[str, Callable[[], str]] = {
    "state-machines.md": state_machines,
    "events.md": events,
}


def code(name: str) -> str:
    return f"`{name}`"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a cell may hold any text."""
    head = tuple(head)
    lines = [head, ("-",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = []
    for name, write in PAGES.items():
        path = REFERENCE / name
        text = (
            f"<!-- Printed from the code by docs/generate.py: change the code. -->\n\n{write()}\n"
        )
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(f"docs/reference/{name}")
        if not arguments:
            path.write_text(text, encoding="utf-8")
    if arguments and stale:
        print(f"Differs from the code: {', '.join(stale)}. Run `make docs` and commit the result.")
        return 1
    for page in stale:
        print(f"Written: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
