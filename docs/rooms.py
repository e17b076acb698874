"""The rooms of both packages, in the one order in which they may import each other.

A room is a folder of a package, or a file at its top. A room imports from rooms above it in its
table, and from itself; `payments_core_http` imports from any room of `payments_core`. The tables
are held by `tests/test_tidy.py`, and printed into `reference/rooms.md`.
"""

from __future__ import annotations

ROOMS: dict[str, dict[str, str]] = {
    "payments_core": {
        "clock": "Time as a value; the one place that reads the system clock.",
        "entropy": "The one place that reads randomness.",
        "money": "Amounts as integers, and how they are written.",
        "errors": "Every error that callers can meet, as one table.",
        "validation": "What callers may say, checked once for the library and HTTP.",
        "telemetry": "What the library reports to an observer.",
        "adapters": "Adapters found by the scheme of a URL.",
        "versions": "The API versions that a deployment supports.",
        "json_depth": "How deeply JSON nests, asked before it is parsed.",
        "http": "HTTP/1.1 as a client: one deadline, bounded answers, kept connections.",
        "storage": "The port, records and documents; adapters for PostgreSQL, SQLite and memory.",
        "credentials": "Secrets, sealed tokens, the key ring.",
        "engine": "Decisions and their committer, state machines, events, ids; jobs, idempotency.",
        "assets": "Chains and assets as configuration.",
        "addresses": "Addresses of each family of chains.",
        "amounts": "Decimal amounts of an asset, read from text.",
        "limiters": "Rate policies, and the port that counts them.",
        "tenants": "Partners, apps, keys and what they may do; client sessions.",
        "chains": "The port to a chain; the scanner, the outbox, adapters for each family.",
        "banks": "The port to a bank; the US rails' rules as tables; a simulated bank.",
        "pricing": "The port to a source of prices; prices out of a table.",
        "routers": "The port to who exchanges assets, also across chains; a simulated router.",
        "accounts": "Accounts, wallets, vaults, verification.",
        "deposits": "Deposit addresses, what arrives there, the sweep into the vault.",
        "payment_settings": "What a partner allows its public Payments.",
        "payments": "The Payment and all that belongs to it: options, receipts, refunds, journal.",
        "quotes": "What a transfer will bring, frozen; the job that follows a router.",
        "legacy": "What the legacy interface alone needs: transactions, settlements, role modules.",
        "onramps": "Reusable on-ramps: bank transfers to an account, credited as stablecoins.",
        "webhooks": "Endpoints, deliveries, signatures, replays; the dispatcher.",
        "maintenance": "What an operator does with a deployment: copy, reseal, purge, repair.",
        "record_types": "Every kind of record, for adapters that make tables of them.",
        "storage_loader": "Opens a storage by its URL.",
        "sandbox": "The doors of a sandbox: its clock, faults, faucet.",
        "providers": "Who does what outside, by mode: adapters, else the sandbox's simulations.",
        "background_jobs": "Which handler does which job; the worker and scanner of a mode.",
        "service": "Puts everything together: `PaymentsService`.",
        "__init__": "The public names.",
        "conformance": "Suites that hold an adapter to its port.",
    },
    "payments_core_http": {
        "redaction": "What is taken out of anything that is logged.",
        "client_address": "Whose request it is, behind proxies.",
        "errors": "Statuses and envelopes of errors.",
        "routing": "Routes as rows.",
        "wire": "Reading bodies and query strings, writing JSON, cursors.",
        "page_headers": "What the headers of private pages have in common.",
        "browser_sessions": "The dashboard's cookie, and the tokens of its forms.",
        "idempotency": "The key and the fingerprint of a request.",
        "authentication": "Who calls, and with which rights.",
        "response_cache": "Response bodies of records that have not changed.",
        "calls": "What a handler receives, and how it answers.",
        "throttling": "Rate policies as they meet a request.",
        "forms": "Forms of the dashboard: read, and known as its own.",
        "cors": "Which browsers' pages may call.",
        "versions": "The version that a request asks for.",
        "observability": "Logs, metrics, traces, health, the management listener.",
        "v2": "The routes of v2, a folder for each resource.",
        "v1": "The routes of the legacy interface, a folder for each resource.",
        "routes": "The routes of both generations.",
        "request_recorder": "What programs ask of the API, recorded off the path of requests.",
        "openapi": "The OpenAPI document, made from the routes.",
        "reference": "The reference pages, made from the same.",
        "pages": "What a payer sees in a browser: the page of a checkout link.",
        "dashboard": "What an environment's operator sees in a browser, and can do there.",
        "app": "The pipeline in order.",
        "__init__": "The public names.",
        "server": "The socket side: connections, framing, limits, threads.",
        "client": "A typed client for partners, synchronous and asynchronous.",
        "testing": "The pytest plugin for those who build on the service.",
        "deployment": "Settings, start-up rules, processes, doctor.",
        "cli": "The command `payments`, a file or folder for each of its commands.",
    },
}


def page() -> str:
    """The tables as Markdown: a list for each package, from the top down."""
    lines = [
        "# Rooms",
        "",
        "A room is a folder of a package, or a file at its top.",
        "It imports from rooms above it, and a test holds that.",
        "",
    ]
    for package, rooms in ROOMS.items():
        lines += [f"`{package}`, from the top down:", ""]
        lines += [f"1. `{room}`: {what}" for room, what in rooms.items()]
        lines.append("")
    return "\n".join(lines).strip()
