"""Every code that an operator must understand has words, so that none comes to a page as it is."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import payments_core
from payments_core.accounts.bank_accounts.lifecycle import BANK_ACCOUNT
from payments_core.accounts.record import AccountStatus, KycStatus, SubjectType
from payments_core.accounts.vaults.record import VaultStatus
from payments_core.accounts.verification.lifecycle import VERIFICATION
from payments_core.addresses import ChainType
from payments_core.banks.incoming import INCOMING_RAILS
from payments_core.banks.rails import RAILS
from payments_core.chains.judge import Reason
from payments_core.credentials.secrets import SecretKind
from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.audit import ActorType
from payments_core.misdirected.lifecycle import SENDING_BACK
from payments_core.onramps import record as onramps
from payments_core.onramps.credit import SCREENING_REASONS
from payments_core.onramps.lifecycle import BANK_TRANSACTION
from payments_core.onramps.review import RULES
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.journal import record as journal
from payments_core.payments.options.lifecycle import OPTION
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.receipts.lifecycle import RECEIPT
from payments_core.payments.record import Intent
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.routing import RETURNED
from payments_core.payments.timeline import REPEAT_REASONS
from payments_core.payments.transitions import PAYMENT
from payments_core.screening.judging import BlockedReason
from payments_core.screening.record import HoldStatus
from payments_core.webhooks.lifecycle import DELIVERY, ENDPOINT
from payments_core_http.dashboard.code_words import CODE_WORDS, name_choice, write_words
from payments_core_http.dashboard.words import LABEL_WORDS, STATUS_WORDS
from payments_core_http.routing import Credential

MACHINES = (
    BANK_ACCOUNT, BANK_TRANSACTION, DELIVERY, DEPOSIT, ENDPOINT, FUNDING_OPERATION, OPTION, PAYMENT,
    PAYOUT, RECEIPT, REFUND, SENDING_BACK, VERIFICATION,
)  # fmt: skip
LABELS = {str(row.label) for row in PAYMENT.transitions if row.label}
VOCABULARIES = {
    "labels": LABELS,
    "repeated states": set(REPEAT_REASONS.values()),
    "verdicts": {*get_args(Reason), *get_args(BlockedReason), RETURNED},
    "on-ramps": {*SCREENING_REASONS, *(rule.reason for rule in RULES if rule.reason)},
    "intents": set(get_args(Intent)),
    "subjects": set(get_args(SubjectType)),
    "wallets": set(get_args(ChainType)),
    "rails": {*RAILS, *INCOMING_RAILS},
    "bank transfers": set(get_args(onramps.BankTransactionType)),
    "keys": set(get_args(SecretKind)),
    "credentials": set(get_args(Credential)),
    "causes": {*get_args(journal.EntryCause), *get_args(onramps.EntryCause)},
    "accounts": {*journal.JOURNAL_ACCOUNTS, *onramps.BOOK_ACCOUNTS},
}
ROOT = Path(payments_core.__file__).parent
SHOWN_FIELDS = ("reason", "failure", "rejection_reason")
NOT_SHOWN = {
    "operator_out_of_gas": "It is in an error, which has its own words.",
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_code_of_a_vocabulary_has_words(name: str) -> None:
    assert VOCABULARIES[name] - CODE_WORDS.keys() == set()


def test_every_state_has_words() -> None:
    states = {state for machine in MACHINES for state in machine.states}
    for kind in (AccountStatus, KycStatus, VaultStatus, HoldStatus, ActorType):
        states |= set(get_args(kind))
    states |= set(get_args(onramps.OnrampAccountStatus))
    assert states - STATUS_WORDS.keys() == set()


def test_every_label_also_says_what_has_happened() -> None:
    assert LABEL_WORDS.keys() == LABELS


def test_every_reason_that_the_code_writes_has_words() -> None:
    """Reasons have no type of their own: banks have reasons that nobody here knows."""
    found = {code: path for path in ROOT.rglob("*.py") for code in list_reasons(path)}
    assert {"payout_returned", "funds_reorged", "expired", "reorged"} <= found.keys()
    missing = found.keys() - CODE_WORDS.keys() - NOT_SHOWN.keys()
    assert {code: str(found[code]) for code in missing} == {}


def list_reasons(path: Path) -> Iterator[str]:
    """The codes that a module writes into a field that a page shows."""
    if "conformance" in path.parts:
        return
    names = [part.removesuffix(".py") for part in path.relative_to(ROOT.parent).parts]
    module = None
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        for given in node.keywords:
            if given.arg not in SHOWN_FIELDS:
                continue
            if isinstance(given.value, ast.Constant) and isinstance(given.value.value, str):
                yield from filter(is_code, [given.value.value])
            elif isinstance(given.value, ast.Name) and given.value.id.isupper():
                module = module or importlib.import_module(".".join(names))
                yield getattr(module, given.value.id)


def is_code(text: str) -> bool:
    return text.replace("_", "").isalnum() and text.islower()


def test_words_stand_where_there_are_any_and_a_code_looks_like_one() -> None:
    assert write_words("late") == "Late"
    assert write_words("r17_of_a_bank") == '<code translate="no">r17_of_a_bank</code>'
    assert write_words("Call <them>") == "<bdi>Call &lt;them&gt;</bdi>"
    assert (name_choice("late"), name_choice("succeeded")) == ("Late", "Succeeded")
    assert name_choice("payment.completed") == "payment.completed"
