"""Follows an offer: what its address has, what becomes of it, and what is given back."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.port import ChainUnavailable
from payments_core.clock import SECOND, Clock
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.routers.cctp.books import Books
from payments_core.routers.cctp.forwarders import (
    OFFER_PAYMENT,
    forwarders,
)
from payments_core.routers.cctp.messages import parse_message
from payments_core.routers.cctp.records import CctpRoute, CctpTransfer
from payments_core.routers.cctp.transfers import (
    MAX_WINDOWS,
    REORG_BLOCKS,
    Side,
    TransferDriver,
    find_place,
    find_spent,
    find_sweep,
)
from payments_core.routers.port import OfferProgress

_BALANCE_OF = bytes.fromhex("70a08231") + bytes(12)
"""The selector of `balanceOf(address)`, and the bytes before the address."""


class OfferFollower:
    """Follows offers. Threads may share it. Its methods raise as `TransferDriver.drive` does."""

    def __init__(
        self,
        sides: Mapping[int, Side],
        driver: TransferDriver,
        books: Books,
        clock: Clock,
        smallest_return_atomic: int,
    ) -> None:
        self._sides = sides
        self._driver = driver
        self._books = books
        self._clock = clock
        self._smallest_return_atomic = smallest_return_atomic

    def begin(
        self, route: CctpRoute, id: str, payment: str, amount_atomic: int, height: int
    ) -> CctpTransfer:
        """The stored transfer of a payment, seen at this height of the source chain."""
        destination = self._sides[route.destination_chain_id].line.chain.heads().latest.number
        return self._books.add(
            CctpTransfer(
                id=id,
                route_id=route.id,
                payment=payment,
                amount_atomic=Atomic(amount_atomic),
                source_from=max(height - REORG_BLOCKS, 0),
                destination_from=max(destination - REORG_BLOCKS, 0),
                created_at_ms=self._clock.now(),
            )
        )

    def follow(self, route: CctpRoute, transfer: CctpTransfer | None) -> OfferProgress:
        """Do what is due for an offer, and return its progress."""
        route = self._see_balance(route)
        offered = route.terms.amount
        is_due = self._clock.now() >= route.terms.returnable_from_s * SECOND
        if transfer is None and route.held_atomic >= offered and not is_due:
            id = f"{route.id}:{OFFER_PAYMENT}"
            transfer = self.begin(route, id, OFFER_PAYMENT, offered, route.searched_from)
        if transfer is not None:
            transfer = self._driver.drive(route, transfer)
        is_burned = transfer is not None and transfer.state != "burning"
        if (is_burned or is_due) and self._is_worth_it(route.held_atomic):
            self._sweep(route)
        elif not route.is_returned and route.payment_hash and not is_burned:
            route = self._see_return(route)
        return self._tell(route, transfer, is_due=is_due)

    def _see_balance(self, route: CctpRoute) -> CctpRoute:
        """The route with what its address has now, and the newest payment if that is more."""
        chain = self._sides[route.source_chain_id].line.chain
        data = _BALANCE_OF + bytes.fromhex(route.address[2:])
        (found,) = chain.read_contracts([(route.terms.token_address, data)])
        if found is None or len(found) != 32:
            raise ChainUnavailable(f"chain {route.source_chain_id}: the token has no balances")
        held = int.from_bytes(found)
        if held == route.held_atomic:
            return route
        seen = evolve(route, held_atomic=Atomic(held))
        if held > route.held_atomic:
            newest = self._find_payment(route)
            seen = evolve(seen, payment_hash=newest or route.payment_hash)
            if newest is not None and newest != route.payment_hash:
                seen = evolve(seen, return_hash=None, is_returned=False)
        return self._books.save(seen)

    def _find_payment(self, route: CctpRoute) -> str | None:
        """The newest transaction that paid the address."""
        chain = self._sides[route.source_chain_id].line.chain
        newest = chain.heads().latest.number
        last = newest
        for _ in range(MAX_WINDOWS):
            first = max(route.searched_from, last - chain.max_scan_blocks + 1)
            found = chain.scan([route.terms.token_address], [route.address], first, last)
            if found:
                return found[-1].transaction_hash
            if first <= route.searched_from:
                break
            last = first - 1
        return None

    def _see_return(self, route: CctpRoute) -> CctpRoute:
        """The route with the return of its payment, by us or by anybody, and its finality."""
        if self._is_worth_it(route.held_atomic):
            return route
        line = self._sides[route.source_chain_id].line
        if route.return_hash is not None:
            place = find_place(line, route.return_hash)
            if place is None:
                return self._books.save(evolve(route, return_hash=None))
            if not place.is_final:
                return route
            after = max(route.searched_from, place.height + 1)
            return self._books.save(evolve(route, is_returned=True, searched_from=after))
        log, searched_to = find_sweep(line, route, route.searched_from)
        if log is None:
            if searched_to == route.searched_from:
                return route
            return self._books.save(evolve(route, searched_from=searched_to))
        amount = Atomic(int.from_bytes(log.data[:32]))
        return self._see_return(
            self._books.save(
                evolve(route, return_hash=log.transaction_hash, returned_atomic=amount)
            )
        )

    def _sweep(self, route: CctpRoute) -> None:
        """Have everything given back. It may fail: then somebody has just done it."""
        source = self._sides[route.source_chain_id]
        if find_spent(source, route, OFFER_PAYMENT) is not None:
            data = route.terms.sweep(route.terms.token_address)
            source.line.send(f"sweep:{route.id}", forwarders().address, data)

    def _is_worth_it(self, held_atomic: int) -> bool:
        return held_atomic >= max(self._smallest_return_atomic, 1)

    def _tell(
        self, route: CctpRoute, transfer: CctpTransfer | None, *, is_due: bool
    ) -> OfferProgress:
        """What has become of the funds; what is delivered or returned need not be final yet."""
        held = route.held_atomic
        is_open = transfer is None and not is_due
        if not (held > 0 if is_open else self._is_worth_it(held)):
            if transfer is not None and transfer.state in ("minted", "delivered"):
                assert transfer.message is not None
                burn = parse_message(bytes.fromhex(transfer.message))
                return OfferProgress(
                    state="delivered",
                    payment_hash=route.payment_hash,
                    transaction_hash=transfer.mint_hash,
                    amount_atomic=burn.amount_atomic - burn.fee_atomic,
                )
            if route.return_hash is not None:
                return OfferProgress(
                    state="returned",
                    payment_hash=route.payment_hash,
                    transaction_hash=route.return_hash,
                    amount_atomic=route.returned_atomic,
                )
            if transfer is None and route.payment_hash is None:
                return OfferProgress(state="waiting")
        return OfferProgress(
            state="paid",
            payment_hash=route.payment_hash,
            amount_atomic=held or (None if transfer is None else transfer.amount_atomic),
        )
