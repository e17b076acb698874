"""Drives one payment from its burn to its mint, a step at a time.

What decides is always the chains' own word, read again: whether the payment is spent (our
contract), and whether the message's nonce is used (Circle's). A crash between any two steps, a lost
answer, a second process or a stranger who acts first changes who did a step, not how often it is
done. A row is saved after each step, and only spares looking for it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import attrs

from payments_core.chains.port import ChainUnavailable, ContractLog
from payments_core.clock import MINUTE, SECOND, Clock
from payments_core.evolve import evolve
from payments_core.routers.cctp.attestations import AttestationService, SignedMessage
from payments_core.routers.cctp.books import Books
from payments_core.routers.cctp.deployments import CctpDeployment
from payments_core.routers.cctp.forwarders import (
    IS_SPENT,
    OFFER_PAYMENT,
    RECEIVE_MESSAGE,
    USED_NONCES,
    address_topic,
    burned_topic,
    forwarders,
    received_topic,
    returned_topic,
)
from payments_core.routers.cctp.line import CallLine
from payments_core.routers.cctp.messages import parse_message
from payments_core.routers.cctp.records import CctpRoute, CctpTransfer

MAX_WINDOWS = 10
"""How many ranges of blocks are searched in one call; the next call continues."""

REORG_BLOCKS = 64
"""How far below the height at which a search could begin it begins, as blocks may be replaced."""

PATIENCE_MS = 30 * MINUTE
"""How long a send's burn may fail before the payment is given back; a pause may end before."""

_log = logging.getLogger(__name__)


@attrs.frozen
class Side:
    """A chain, with its CCTP and the line of our calls."""

    cctp: CctpDeployment
    line: CallLine


@attrs.frozen
class Place:
    """The height of a transaction's block, and whether that is final."""

    height: int
    is_final: bool


class TransferDriver:
    """Drives transfers between the chains of its sides. Threads may share it."""

    def __init__(
        self,
        sides: Mapping[int, Side],
        service: AttestationService,
        books: Books,
        clock: Clock,
    ) -> None:
        self._sides = sides
        self._service = service
        self._books = books
        self._clock = clock
        self._steps: Mapping[str, Callable[[CctpRoute, CctpTransfer], CctpTransfer | None]] = {
            "burning": self._burn,
            "burned": self._attest,
            "attested": self._mint,
            "minted": self._settle,
            "returning": self._settle_return,
        }

    def drive(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer:
        """Do what is due; the transfer as it is then. Repeating it is safe.

        Raises ChainUnavailable, AttestationsUnavailable, SignerRefused and StorageError.
        """
        tried: set[str] = set()
        while transfer.state in self._steps and transfer.state not in tried:
            tried.add(transfer.state)
            after = self._steps[transfer.state](route, transfer)
            if after is not None:
                transfer = self._books.save(after)
        return transfer

    # The steps: each returns what to save, or None if there is nothing to do now but wait.

    def _burn(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer | None:
        source = self._sides[route.source_chain_id]
        is_spent = find_spent(source, route, transfer.payment)
        if is_spent is None:
            return None  # the contract is only being deployed
        if is_spent:
            topics = (None, address_topic(route.address), transfer.payment)
            log, searched_to = find_newest_log(
                source.line, forwarders().address, topics, transfer.source_from
            )
            if log is None:
                return _changed(transfer, evolve(transfer, source_from=searched_to))
            if log.topics[0] == returned_topic():
                return evolve(transfer, state="returning", return_hash=log.transaction_hash)
            assert log.topics[0] == burned_topic()
            return evolve(transfer, state="burned", burn_hash=log.transaction_hash)
        now = self._clock.now()
        if route.is_offer and now >= route.terms.returnable_from_s * SECOND:
            return None  # the address gives it back
        data = route.terms.burn(transfer.payment, transfer.amount_atomic)
        if self._send(source, f"burn:{transfer.id}", data, route):
            return _changed(transfer, evolve(transfer, failing_since_ms=None))
        if transfer.failing_since_ms is None:  # often another process has just made it
            return evolve(transfer, failing_since_ms=now)
        _log.warning("the burn of %s would fail now", transfer.id)
        if not route.is_offer and now - transfer.failing_since_ms >= PATIENCE_MS:
            return self._give_back(source, route, transfer)
        return None

    def _give_back(
        self, source: Side, route: CctpRoute, transfer: CctpTransfer
    ) -> CctpTransfer | None:
        data = route.terms.give_back(transfer.payment, transfer.amount_atomic)
        if self._send(source, f"return:{transfer.id}", data, route):
            return None
        if self._clock.now() < route.terms.returnable_from_s * SECOND:
            return None
        log, searched_to = find_sweep(source.line, route, transfer.source_from)
        if log is None:
            return _changed(transfer, evolve(transfer, source_from=searched_to))
        return evolve(transfer, state="returning", return_hash=log.transaction_hash)

    def _attest(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer | None:
        source = self._sides[route.source_chain_id]
        assert transfer.burn_hash is not None
        answer = self._service.find_messages(source.cctp.domain, transfer.burn_hash)
        found = next((one for one in answer.signed if self._is_of(one, route, transfer)), None)
        if found is not None:
            return evolve(
                transfer,
                state="attested",
                message=found.message.hex(),
                attestation=found.attestation.hex(),
            )
        for delay in answer.delays:
            _log.info("the attestation of %s is delayed: %s", transfer.id, delay)
        if self._is_in_a_block(source, transfer.burn_hash):
            return None
        return evolve(transfer, state="burning", burn_hash=None)  # a reorg undid the burn

    def _mint(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer | None:
        destination = self._sides[route.destination_chain_id]
        transmitter = destination.cctp.transmitter
        assert transfer.message is not None
        assert transfer.attestation is not None
        message, attestation = map(bytes.fromhex, (transfer.message, transfer.attestation))
        burn = parse_message(message)
        used = _read_number(
            destination, transmitter, USED_NONCES.call(bytes.fromhex(burn.nonce[2:]))
        )
        if used is None:
            raise ChainUnavailable(f"chain {route.destination_chain_id} has no CCTP")
        if used:
            topics = (received_topic(), None, burn.nonce)
            log, searched_to = find_newest_log(
                destination.line, transmitter, topics, transfer.destination_from
            )
            if log is None:
                return _changed(transfer, evolve(transfer, destination_from=searched_to))
            return evolve(transfer, state="minted", mint_hash=log.transaction_hash)
        data = RECEIVE_MESSAGE.call(message, attestation)
        if destination.line.send(f"mint:{transfer.id}", transmitter, data):
            return None
        _log.info("the mint of %s would fail now", transfer.id)
        ends_at = burn.expires_at_block
        if ends_at and ends_at <= destination.line.chain.heads().latest.number:
            self._service.request_again(burn.nonce)
        # Circle may have changed its attesters since then: the next look gets the message again.
        return evolve(transfer, state="burned", message=None, attestation=None)

    def _settle(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer | None:
        destination = self._sides[route.destination_chain_id]
        assert transfer.mint_hash is not None
        place = find_place(destination.line, transfer.mint_hash)
        if place is None:  # a reorg undid the mint
            return evolve(transfer, state="attested", mint_hash=None)
        return evolve(transfer, state="delivered") if place.is_final else None

    def _settle_return(self, route: CctpRoute, transfer: CctpTransfer) -> CctpTransfer | None:
        source = self._sides[route.source_chain_id]
        assert transfer.return_hash is not None
        place = find_place(source.line, transfer.return_hash)
        if place is None:
            return evolve(transfer, state="burning", return_hash=None)
        return evolve(transfer, state="returned") if place.is_final else None

    def _send(self, source: Side, subject: str, data: bytes, route: CctpRoute) -> bool:
        """A call of the forwarders by the route's operator, the key of the time of its offer."""
        return source.line.send(subject, forwarders().address, data, sender=route.terms.operator)

    def _is_in_a_block(self, side: Side, hash: str) -> bool:
        view = side.line.chain.transaction(hash)
        return view is not None and view.block is not None

    def _is_of(self, signed: SignedMessage, route: CctpRoute, transfer: CctpTransfer) -> bool:
        """Whether a message is the payment's own: a transaction may have others' messages too."""
        burn, terms = signed.burn, route.terms
        source = self._sides[route.source_chain_id].cctp
        destination = self._sides[route.destination_chain_id].cctp
        says = (
            burn.source_domain, burn.destination_domain, burn.sender, burn.handler,
            burn.caller, burn.token, burn.recipient, burn.amount_atomic, burn.depositor,
        )  # fmt: skip
        means = (
            source.domain, destination.domain, source.messenger, destination.messenger,
            bytes(32), terms.token_address, terms.recipient, transfer.amount_atomic, route.address,
        )  # fmt: skip
        return (
            says == means
            and burn.finality >= terms.min_finality
            and burn.fee_atomic <= terms.max_fee(transfer.amount_atomic)
        )


def find_spent(source: Side, route: CctpRoute, payment: str) -> bool | None:
    """Whether a payment is burned or given back; None while the contract is being deployed.

    Anybody may deploy it, and it is the same. A call of it before would do nothing, and succeed.
    """
    data = IS_SPENT.call(route.address, bytes.fromhex(payment[2:]))
    found = _read_number(source, forwarders().address, data)
    if found is None:
        source.line.send("deploy", *forwarders().deployment)
    return None if found is None else found != 0


def find_newest_log(
    line: CallLine, address: str, topics: tuple[str | None, ...], first: int
) -> tuple[ContractLog | None, int]:
    """The newest log in the first range of blocks that has any, and where to search from next."""
    newest = line.chain.heads().latest.number
    first = min(first, newest)
    for _ in range(MAX_WINDOWS):
        last = min(first + line.chain.max_scan_blocks - 1, newest)
        logs = line.caller.find_logs(address, topics, first, last)
        if logs:
            return logs[-1], first
        if last >= newest:
            break
        first = last + 1
    return None, first


def find_place(line: CallLine, hash: str) -> Place | None:
    """Where a transaction is; None if it is in no block."""
    heads = line.chain.heads()
    view = line.chain.transaction(hash)
    if view is None or view.block is None or not view.succeeded:
        return None
    return Place(view.block.number, view.block.number <= heads.final.number)


def find_sweep(line: CallLine, route: CctpRoute, first: int) -> tuple[ContractLog | None, int]:
    """As `find_newest_log`, of a return of all that a route's address had, by anybody."""
    topics = (
        returned_topic(),
        address_topic(route.address),
        OFFER_PAYMENT,
        address_topic(route.terms.token_address),
    )
    return find_newest_log(line, forwarders().address, topics, first)


def _read_number(side: Side, address: str, data: bytes) -> int | None:
    """The word that a contract returns; None if there is no such contract."""
    (found,) = side.line.chain.read_contracts([(address, data)])
    return int.from_bytes(found) if found is not None and len(found) == 32 else None


def _changed(before: CctpTransfer, after: CctpTransfer) -> CctpTransfer | None:
    """The transfer after a look; None if it is as before, so that nothing is saved."""
    return None if after == before else after
