"""A period as a beancount file (https://beancount.github.io): opening balances, a transaction for
each movement, and assertions of the closing balances, which `bean-check` verifies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from payments_core.books.balances import Balances
from payments_core.books.movements import Movement
from payments_core.books.period import Period
from payments_core.clock import format_iso
from payments_core.money import format_signed_amount
from payments_core.networks import Asset

ACCOUNTS: Mapping[str, str] = {
    "payer": "Income:Payers",
    "escrow": "Assets:Escrow",
    "excess": "Assets:Excess",
    "recipient": "Expenses:Recipients",
    "fees": "Assets:Fees",
    "offramp": "Assets:Offramp",
    "bank": "Assets:Bank",
    "sender": "Income:BankSenders",
}
"""The accounts of the journal. Assets are what is held for others; what came in has the sign of
income, and what was passed on that of expenses."""

_NOT_OF_A_CURRENCY = re.compile(r"[^A-Z0-9]")
_MAX_CURRENCY = 24


def iter_beancount(
    title: str, period: Period, opening: Balances, movements: Iterable[Movement]
) -> Iterator[bytes]:
    """The file in pieces, in the order of time."""
    currencies = _Currencies()
    first, end = period.first.isoformat(), period.end.isoformat()
    yield f'option "title" {_quote(title)}\n\n'.encode()
    for account in ACCOUNTS.values():
        yield f"{first} open {account}\n".encode()
    balances = opening.carry()
    yield from _open(first, balances, currencies)
    for one in movements:
        balances.post(one.asset, one.postings)
        yield from currencies.declare(one.asset, first)
        yield _write_movement(one, currencies.name(one.asset)).encode()
    yield b"\n"
    for asset, account, turnover in balances:
        amount = format_signed_amount(turnover.closing, asset.decimals)
        yield f"{end} balance {ACCOUNTS[account]} {amount} ~ 0 {currencies.name(asset)}\n".encode()


def _open(first: str, balances: Balances, currencies: _Currencies) -> Iterator[bytes]:
    """One transaction with what each account had; without any there is nothing to open."""
    lines = []
    for asset, account, turnover in balances:
        yield from currencies.declare(asset, first)
        amount = format_signed_amount(turnover.opening, asset.decimals)
        lines.append(f"  {ACCOUNTS[account]} {amount} {currencies.name(asset)}\n")
    if lines:
        yield f'\n{first} * "Opening balances"\n{"".join(lines)}'.encode()


def _write_movement(one: Movement, currency: str) -> str:
    narration = one.reference or one.description or ""
    lines = [
        f"\n{one.day.isoformat()} * {_quote(one.cause)} {_quote(narration)} ^{one.owner_id}\n",
        f"  entry: {_quote(one.id)}\n",
        f"  at: {_quote(format_iso(one.at_ms))}\n",
    ]
    facts = (
        ("account", one.account_id),
        ("user", one.external_user_id),
        ("transaction", one.transaction_hash),
        ("note", one.note),
    )
    lines += [f"  {name}: {_quote(text)}\n" for name, text in facts if text]
    for account, amount in one.postings.items():
        text = format_signed_amount(amount, one.asset.decimals)
        lines.append(f"  {ACCOUNTS[account]} {text} {currency}\n")
    return "".join(lines)


class _Currencies:
    """The name of each asset: its symbol and its chain, as far as beancount takes them.

    Two assets never share a name: a second one with the same name has its token's address in it.
    """

    def __init__(self) -> None:
        self._names: dict[Asset, str] = {}

    def name(self, asset: Asset) -> str:
        return self._names[asset]

    def declare(self, asset: Asset, first: str) -> Iterator[bytes]:
        """The directive of an asset that was not declared before."""
        if asset in self._names:
            return
        name = self._names[asset] = self._choose(asset)
        about = f"{asset.symbol} on chain {asset.chain_id}, token {asset.address}"
        yield f"\n{first} commodity {name}\n  name: {_quote(about)}\n".encode()

    def _choose(self, asset: Asset) -> str:
        symbol = _NOT_OF_A_CURRENCY.sub("", asset.symbol.upper()).lstrip("0123456789") or "X"
        wanted = f"{symbol[: _MAX_CURRENCY - 12]}.{asset.chain_id}"[:_MAX_CURRENCY]
        taken = self._names.values()
        if wanted not in taken:
            return wanted
        return f"{symbol[:8]}.{_NOT_OF_A_CURRENCY.sub('', asset.address.upper())[-12:]}"


def _quote(text: str) -> str:
    """A text of one line, in quotes."""
    one_line = " ".join(text.split())
    escaped = one_line.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
