"""Writes the pages of docs/reference that are printed from tables in the code.

    python -m docs.generate            write them
    python -m docs.generate --check    fail, and name the pages, when they differ from the code

A new page is a function that returns Markdown and a row in `PAGES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.disputes.lifecycle import DISPUTE
from payments_core.errors import PaymentsError
from payments_core.events import CATALOGUE
from payments_core.funding.lifecycle import FUNDING_OPERATION
from payments_core.kyc.lifecycle import KYC
from payments_core.mandates.lifecycle import MANDATE
from payments_core.options.lifecycle import OPTION, SELECTION
from payments_core.payments.machine import PAYMENT
from payments_core.receipts.lifecycle import RECEIPT
from payments_core.refunds.lifecycle import REFUND
from payments_core.transitions import Machine
from payments_core.webhooks.lifecycle import DELIVERY, ENDPOINT
from payments_core_http import health
from payments_core_http.errors import status_of
from payments_core_http.routing import Route
from payments_core_http.v2.routes import ROUTES

REFERENCE = Path(__file__).parent / "reference"

MACHINES: tuple[Machine, ...] = (
    PAYMENT,
    RECEIPT,
    REFUND,
    OPTION,
    SELECTION,
    FUNDING_OPERATION,
    MANDATE,
    DEPOSIT,
    ENDPOINT,
    DELIVERY,
    DISPUTE,
    KYC,
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


def routes() -> str:
    """Every route: its credential, what it needs, and what it answers."""
    return "\n\n".join(
        (
            "# Routes",
            "Every `POST`, `PUT` and `PATCH` with a credential takes an `Idempotency-Key`;"
            " *required* says where it must be sent.\n"
            "Each answer, errors too, carries `X-Request-Id` and `Service-Version`.",
            table(
                ("Route", "What for", "Credential", "Needs", "Key", "Answers", "Errors of its own"),
                (
                    (
                        code(f"{route.method} {route.path}"),
                        route.summary,
                        CREDENTIALS[route.credential]
                        + (" and the Payment's secret" if route.with_payment_secret else "")
                        + (", or that and the Payment's secret" * route.may_have_payment_secret),
                        needs(route),
                        route.idempotency if route.idempotency == "required" else "",
                        str(route.success),
                        ", ".join(code(error.code) for error in route.errors),
                    )
                    for route in (*health.ROUTES, *ROUTES)
                ),
            ),
        )
    )


def needs(route: Route) -> str:
    """The scopes, permissions and kinds of key that a route asks for."""
    if route.needs is None:
        return ""
    asked = [code(name) for name in (*route.needs.scopes, *route.needs.permissions)]
    return ", ".join([*asked, *(["a standard key"] if route.needs.standard_only else [])])


def error_codes() -> str:
    """Every error code with its status and meaning."""
    kinds = sorted(
        (kind for kind in leaves(PaymentsError) if hasattr(kind, "code")),
        key=lambda kind: (status_of(kind), kind.code),
    )
    return "\n\n".join(
        (
            "# Errors",
            "An error answers `{error: {code, message, details}}`; `details` holds the facts"
            " and always the `requestId`.",
            table(
                ("Status", "Code", "Meaning", "Details"),
                (
                    (
                        str(status_of(kind)),
                        code(kind.code),
                        (kind.__doc__ or "").split("\n\n")[0],
                        ", ".join(code(on_the_wire(field.name)) for field in attrs.fields(kind)),
                    )
                    for kind in kinds
                ),
            ),
        )
    )


def on_the_wire(name: str) -> str:
    """A fact's name among an error's `details`."""
    first, *rest = name.replace("_after_s", "_after_seconds").split("_")
    return first + "".join(word.title() for word in rest)


def leaves(kind: type[PaymentsError]) -> list[type[PaymentsError]]:
    """The classes below one that have none below themselves."""
    # attrs makes a second class of each; the one that is replaced has no fields.
    below = [
        one
        for one in kind.__subclasses__()
        if "__attrs_attrs__" in vars(one) or one.__subclasses__()
    ]
    found = [leaf for one in below for leaf in leaves(one)]
    return found or [kind]


CREDENTIALS = {
    "server_key": "app id and secret (Basic)",
    "bearer_key": "app secret (Bearer)",
    "client_token": "client access token (Bearer)",
    "session_token": "client session token (Bearer)",
    "none": "none",
}

PAGES: dict[str, Callable[[], str]] = {
    "routes.md": routes,
    "errors.md": error_codes,
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
