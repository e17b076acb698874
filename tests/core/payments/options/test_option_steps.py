"""The pure steps of options and funding operations, branch by branch."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from payments_core.engine.step import Step
from payments_core.errors import (
    ActionAlreadyUsed,
    ActionExpired,
    ActionInvalid,
    InvalidState,
    OptionExpired,
    OptionSuperseded,
    PaymentsError,
)
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.options import lifecycle as options
from tests.core.examples import NOW, a_payment, an_operation, an_option

LATER = NOW + 500


@pytest.mark.parametrize(
    ("error", "option", "action"),
    [
        (
            OptionSuperseded,
            options.supersede(an_option(status="expired"), now=NOW).record,
            "action_1",
        ),
        (OptionExpired, an_option(status="expired", used_action_ids=("a",)), "a"),
        (ActionAlreadyUsed, an_option(used_action_ids=("a", "b")), "a"),
        (InvalidState, an_option(status="cancelled"), "action_1"),
        (ActionInvalid, an_option(action_id=None, action_expires_at_ms=None), "action_1"),
        (ActionInvalid, an_option(), "action_2"),
        (ActionExpired, an_option(action_expires_at_ms=NOW), "action_1"),
        (None, an_option(action_expires_at_ms=NOW + 1), "action_1"),
    ],
)
def test_an_action_is_checked_in_this_order(
    error: type[PaymentsError] | None, option: object, action: str
) -> None:
    check: Callable[[], None] = lambda: options.require_live_action(option, action, now=NOW)  # type: ignore[arg-type]  # noqa: E731
    if error is None:
        check()
    else:
        with pytest.raises(error):
            check()


def test_consuming_an_action_uses_it_up_and_starts_the_option() -> None:
    option = options.consume_action(an_option(used_action_ids=("action_0",)), now=LATER).record
    assert option.status == "processing"
    assert option.used_action_ids == ("action_0", "action_1")
    assert (option.action_id, option.action_expires_at_ms) == (None, None)


def test_a_refresh_gives_a_new_action_no_longer_than_the_option_lives() -> None:
    payment = a_payment(counted_atomic=400)
    fresh = options.refresh(an_option(), payment, now=LATER, action_id="action_2").record
    assert (fresh.action_id, fresh.action_expires_at_ms) == ("action_2", LATER + 300_000)
    assert fresh.required_atomic == 600  # a part was paid since
    ends = an_option(expires_at_ms=LATER + 7)
    short = options.refresh(ends, payment, now=LATER, action_id="action_2").record
    assert short.action_expires_at_ms == LATER + 7
    for error, option in (
        (OptionSuperseded, an_option(selection_status="superseded")),
        (OptionExpired, an_option(status="expired")),
        (InvalidState, an_option(status="processing")),
    ):
        with pytest.raises(error):
            options.refresh(option, payment, now=LATER, action_id="action_2")


def test_ending_leaves_a_terminal_option_alone() -> None:
    ended = options.close(an_option(), "cancel", now=LATER).record
    assert (ended.status, ended.action_id) == ("cancelled", None)
    for status in options.OPTION.terminal:
        option = an_option(status=status)
        assert options.close(option, "expire", now=LATER).record is option
    with pytest.raises(InvalidState):
        options.supersede(an_option(selection_status="superseded"), now=NOW)


ENDINGS = {
    # Status, trigger of the Payment: the end of a Vault option, of a direct one.
    ("creating", "expire"): ("failed", "failed"),
    ("creating", "cancel"): ("failed", "failed"),
    ("pending", "expire"): ("expired", "expired"),
    ("pending", "cancel"): ("cancelled", "cancelled"),
    ("processing", "expire"): ("failed", "expired"),
    ("processing", "cancel"): ("failed", "processing"),
}


@pytest.mark.parametrize(("known", "ends"), ENDINGS.items())
def test_a_payment_that_ends_ends_its_options_as_their_method_says(
    known: tuple[str, str], ends: tuple[str, str]
) -> None:
    status, trigger = known
    for method, end in zip(("vault", "direct"), ends, strict=True):
        option = an_option(method=method, status=status)
        ended = options.close_with_payment(option, trigger, now=LATER).record
        assert ended.status == end
        assert ended is option or (ended.action_id, ended.updated_at_ms) == (None, LATER)


def test_an_operation_is_stamped_as_it_goes_and_reports_its_payments_owner() -> None:
    operation, payment = an_operation(), a_payment()
    seen = []
    for trigger in ("authorize", "broadcast", "lose", "broadcast", "confirm"):
        step = funding.apply_trigger(operation, trigger, payment, now=NOW + len(seen))
        operation = step.record
        seen += [event.name for event in step.events] or ["-"]
    assert seen == [
        "vault_funding.authorized", "vault_funding.broadcast", "-",
        "vault_funding.broadcast", "vault_funding.confirmed",
    ]  # fmt: skip
    assert operation.status_version == 6
    stamps = (operation.authorized_at_ms, operation.broadcast_at_ms, operation.confirmed_at_ms)
    assert stamps == (NOW, NOW + 1, NOW + 4)


def test_a_reorg_keeps_the_moment_of_the_authorization() -> None:
    """The day's count of the vault hangs on it."""
    operation = an_operation(status="broadcast", authorized_at_ms=NOW, broadcast_at_ms=NOW + 1)
    undone = funding.apply_trigger(operation, "reorg", a_payment(), now=NOW + 9)
    back = undone.record
    assert (back.status, back.authorized_at_ms, undone.events) == ("authorized", NOW, ())
    sent = funding.apply_trigger(back, "broadcast", a_payment(), now=NOW + 10).record
    assert sent.broadcast_at_ms == NOW + 1


def test_ending_an_operation_where_it_cannot_end_changes_nothing() -> None:
    for status in ("broadcast", "unknown", *funding.FUNDING_OPERATION.terminal):
        operation = an_operation(status=status)
        assert funding.close(operation, "cancel", a_payment(), now=NOW) == Step(operation)
    ended = funding.close(an_operation(status="authorized"), "expire", a_payment(), now=NOW)
    assert (ended.record.status, ended.record.status_version, ended.events) == ("expired", 2, ())


def test_a_failed_operation_says_why_and_reports_it() -> None:
    step = funding.apply_trigger(
        an_operation(status="broadcast"), "fail", a_payment(), now=NOW, failure="reverted"
    )
    failed, [event] = step.record, step.events
    assert failed.failure == "reverted"
    assert event.payload["status"] == "failed"
    assert event.account_id == "acct_1"
    assert attrs.evolve(failed, failure=None) != failed
