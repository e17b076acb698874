"""The rooms of both packages, in the one order in which they may import each other.

A room is a folder of a package, or a file at its top. A room imports from rooms above it in its
table, and from itself; `payments_core_http` imports from any room of `payments_core`.
`tests/test_tidy.py` verifies the tables, and that no folder has a circle of imports among the
files and folders in it. `reference/rooms.md` prints the tables.
"""

from __future__ import annotations

ROOMS: dict[str, dict[str, str]] = {
    "payments_core": {
        "clock": "Time as a value; the one place that reads the system clock.",
        "entropy": "The one place that reads random numbers.",
        "brief_repr": "The `repr` of records and other values: one short line.",
        "evolve": "Makes changed copies of frozen objects quickly.",
        "requirements": "The oldest versions that work, of what pip does not install.",
        "waiting": "What a thread tells the pool that runs it when it waits.",
        "money": "Amounts as integers, and their text form.",
        "field_views": "Shows a field in the form for people beside the field itself.",
        "errors": "Every error that a caller can get, in one table.",
        "validation": "Validation of input, once for the library and HTTP.",
        "plain_calls": "Refuses functions and objects whose calls nobody would await.",
        "telemetry": "What the library reports to an observer.",
        "extras": "Names the extra that installs a missing package.",
        "fork_safety": "Resets locks and connections in the child of a fork.",
        "adapters": "Adapters found by the scheme of a URL.",
        "contracts": "The dated contracts, and how each differs from the next newer one.",
        "public_url": "The URL at which payers and partners reach the service.",
        "json_depth": "How deeply JSON nests, checked before it is parsed.",
        "http": "HTTP/1.1 as a client: one deadline, bounded answers, kept connections.",
        "storage": "The port, records and documents; adapters for PostgreSQL, SQLite and memory.",
        "credentials": "Secrets, sealed tokens, the key ring.",
        "addresses": "Addresses of each family of chains.",
        "acceptance": "When a block counts: rows of a policy, by the Payment's amount.",
        "networks": "The registry of networks and their tokens, which is data.",
        "explorers": "Links to the explorers of networks.",
        "engine": "Decisions and their committer, state machines, events, ids; jobs, idempotency.",
        "amounts": "Decimal amounts of an asset, read from text.",
        "limiters": "Rate policies, and the port that counts them.",
        "tenants": "Partners, apps, keys and their permissions; client sessions.",
        "screening": "The port to a screening provider, and its verdicts; a simulated one.",
        "chains": "The port to a chain; the scanner, the outbox, adapters for each family.",
        "misdirected": "Funds that arrive and do not count: their way back.",
        "notices": "Notices that providers send: stored once, and routed to their cases.",
        "banks": "The port to a bank; the US rails' rules as tables; a simulated bank.",
        "pricing": "The port to a price source; prices from a table, and from feeds on chains.",
        "routers": "The port to routers, which exchange assets; CCTP between chains; a simulation.",
        "hosted_onramps": "The port to on-ramps where payers pay by card or bank; a simulated one.",
        "accounts": "Accounts, wallets, vaults, verification.",
        "deposits": "Deposit addresses, their deposits, the sweep into the vault.",
        "payment_settings": "A partner's settings for its Payments.",
        "payments": "The Payment and all that belongs to it: options, receipts, refunds, journal.",
        "quotes": "Fixed terms of a transfer; the job that follows a router.",
        "legacy": "What only the legacy interface needs: transactions, settlements, role modules.",
        "onramps": "Reusable on-ramps: bank transfers to an account, credited as stablecoins.",
        "webhooks": "Endpoints, deliveries, signatures, replays; the dispatcher.",
        "maintenance": "Maintenance by an operator: copy, reseal, purge, repair.",
        "record_types": "Every record type, for adapters that create their tables.",
        "storage_loader": "Opens a storage by its URL.",
        "port_loader": "Opens a provider by its URL.",
        "sandbox": "The controls of a sandbox: its clock, faults, faucet.",
        "providers": "The external services of a mode: adapters, or the sandbox's simulations.",
        "background_jobs": "The handler of each job; the worker and scanner of a mode.",
        "settings": "The settings that a deployment decides, with their defaults.",
        "passed_objects": "The ports of what an embedding program may pass.",
        "parts": "Everything that a service is made of, each part once.",
        "operation": "Rows that bind a part's operation to an authority, and check its arguments.",
        "resources": "What an authority can do: a class per resource, a row per operation.",
        "service": "Builds `PaymentsService` from all other rooms.",
        "__init__": "The public names.",
        "conformance": "Suites that verify an adapter against its port.",
    },
    "payments_core_http": {
        "server": "The socket side, of any application: connections, framing, limits, threads.",
        "redaction": "Removes secrets from everything that is logged.",
        "client_address": "The client's address, behind proxies.",
        "errors": "Statuses and envelopes of errors.",
        "routing": "Routes as rows.",
        "wire": "Reading bodies and query strings, writing JSON, cursors.",
        "mounting": "Where the application is mounted, and how its pages lead to one another.",
        "page_headers": "The common headers of private pages.",
        "browser_sessions": "The dashboard's cookie, and the tokens of its forms.",
        "idempotency": "The key and the fingerprint of a request.",
        "authentication": "The caller, and its rights.",
        "response_cache": "Response bodies of records that have not changed.",
        "older_objects": "The objects that an older contract changes, wherever they are in JSON.",
        "contracts": "The version that a request requires; its body and answer in older contracts.",
        "calls": "A handler's request, and its answers.",
        "rate_context": "What is known about the rates of one request.",
        "throttling": "Rate policies applied to requests.",
        "cors": "Which origins browsers may call from.",
        "observability": "Logs, metrics, traces, health, the management listener.",
        "formats": "The API's JSON and the pages' forms: reads requests, writes refusals.",
        "v2": "The routes of v2, a folder for each resource.",
        "v1": "The routes of the legacy interface, a folder for each resource.",
        "routes": "All routes, of v1 and v2.",
        "request_recorder": "The request log, recorded outside the path of requests.",
        "openapi": "The OpenAPI document, made from the routes.",
        "reference": "The reference pages, made from the same routes.",
        "provider_notices": "The door for the notices of providers.",
        "pages": "The payer's pages in a browser: the page of a checkout link.",
        "dashboard": "The dashboard for an environment's operator.",
        "app": "The pipeline in order.",
        "__init__": "The public names.",
        "serving": "The application on the server: refusals, turns by credential, limits.",
        "client": "A typed client for partners, synchronous and asynchronous.",
        "testing": "The pytest plugin for users of the service.",
        "deployment": "Settings, start-up rules, processes, doctor.",
        "cli": "The command `payments`, a file or folder for each of its commands.",
        "__main__": "The console script, which also works without the packages of `cli`.",
    },
}


def page() -> str:
    """The tables as Markdown: a list for each package, from the top down."""
    lines = [
        "# Rooms",
        "",
        "A room is a folder of a package, or a file at its top.",
        "It imports only from the rooms above it in its list, and a test verifies this.",
        "",
    ]
    for package, rooms in ROOMS.items():
        lines += [f"`{package}`, from the top down:", ""]
        lines += [f"1. `{room}`: {what}" for room, what in rooms.items()]
        lines.append("")
    return "\n".join(lines).strip()
