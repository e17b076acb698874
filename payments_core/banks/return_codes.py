"""The return codes of ACH, R01 to R29, each with the time in which a bank may return with it.

Source: Nacha Operating Rules, Appendix Four (the codes) and Section 3.8 (the deadlines). The
operator's rejections (R13, R18, R19, R25 to R28) come from the ACH Operator, not from the
recipient's bank, with the file after the one in which the transfer was processed. A credit that its
recipient refuses (R23) comes back when the bank hears of the refusal.

The windows were compared with the public tables of PayNearMe ("ACH Return Codes") and Galileo
("API Reference: ACH Return Codes"), which print Nacha's. R29 is for accounts of businesses, which
have no sixty days: Modern Treasury ("ACH Return Codes: R29") and Slash ("ACH Return Code R29")
print two banking days. An individual's bank uses R05, R07, R10 or R11.

Most transfers to an account ("credits") are returned with R02, R03, R04, R14 to R17, R20 or R23.
R01, R05, R07 to R11, R24 and R29 are made for transfers out of an account ("debits").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Literal

import attrs

from payments_core.banks.banking_days import add_banking_days, eastern_instant
from payments_core.banks.rails import BANKING_DAY_OPENS
from payments_core.clock import Instant

HolderType = Literal["individual", "business"]

ReturnWindow = Literal["operator", "two_banking_days", "sixty_days", "by_agreement", "on_refusal"]


@attrs.frozen
class ReturnCode:
    """Why a transfer came back, and how long that may take: by the kind of account."""

    code: str
    title: str
    individual: ReturnWindow = "two_banking_days"
    business: ReturnWindow = "two_banking_days"

    def window(self, holder: HolderType) -> ReturnWindow:
        """How long a bank may return a transfer of such an account with this code."""
        return self.individual if holder == "individual" else self.business


def _rejected_by_operator(code: str, title: str) -> ReturnCode:
    return ReturnCode(code, title, individual="operator", business="operator")


_CODES: tuple[ReturnCode, ...] = (
    ReturnCode("R01", "Insufficient funds"),
    ReturnCode("R02", "Account closed"),
    ReturnCode("R03", "No account, or unable to locate the account"),
    ReturnCode("R04", "Invalid account number structure"),
    ReturnCode("R05", "Unauthorized debit to a consumer account", individual="sixty_days"),
    ReturnCode(
        "R06",
        "Returned at the request of the sender's bank",
        individual="by_agreement",
        business="by_agreement",
    ),
    ReturnCode("R07", "Authorization revoked by the customer", individual="sixty_days"),
    ReturnCode("R08", "Payment stopped"),
    ReturnCode("R09", "Uncollected funds"),
    ReturnCode(
        "R10",
        "The customer says that the sender is unknown or not authorized",
        individual="sixty_days",
    ),
    ReturnCode(
        "R11",
        "The customer says that the entry is not as authorized",
        individual="sixty_days",
    ),
    ReturnCode("R12", "Account sold to another bank"),
    _rejected_by_operator("R13", "Invalid ACH routing number"),
    ReturnCode("R14", "Representative payee deceased, or unable to continue"),
    ReturnCode("R15", "Account holder deceased"),
    ReturnCode("R16", "Account frozen, or returned on an OFAC instruction"),
    ReturnCode("R17", "File record edit criteria, or a questionable transfer"),
    _rejected_by_operator("R18", "Improper effective entry date"),
    _rejected_by_operator("R19", "Amount field error"),
    ReturnCode("R20", "Not a transaction account"),
    ReturnCode("R21", "Invalid company identification"),
    ReturnCode("R22", "Invalid individual ID number"),
    ReturnCode(
        "R23",
        "Credit refused by the recipient",
        individual="on_refusal",
        business="on_refusal",
    ),
    ReturnCode("R24", "Duplicate entry"),
    _rejected_by_operator("R25", "Addenda error"),
    _rejected_by_operator("R26", "Mandatory field error"),
    _rejected_by_operator("R27", "Trace number error"),
    _rejected_by_operator("R28", "Routing number check digit error"),
    ReturnCode("R29", "The corporate customer says not authorized"),
)

RETURN_CODES: Mapping[str, ReturnCode] = {row.code: row for row in _CODES}

CONSUMER_RETURN_DAYS = 60
RETURN_BANKING_DAYS = 2


def return_deadline(code: str, holder: HolderType, settled_on: date) -> Instant | None:
    """The last instant at which a transfer that settled on this date may come back.

    None means that the rules count no deadline from settlement (R06, R23). Raises KeyError for an
    unknown code.
    """
    window = RETURN_CODES[code].window(holder)
    if window in ("by_agreement", "on_refusal"):
        return None
    last_day = {
        "operator": settled_on,
        "two_banking_days": add_banking_days(settled_on, RETURN_BANKING_DAYS),
        "sixty_days": _banking_day_after(settled_on + timedelta(days=CONSUMER_RETURN_DAYS)),
    }[window]
    return eastern_instant(last_day, BANKING_DAY_OPENS)


def _banking_day_after(day: date) -> date:
    """The banking day that follows this day, which need not be a banking day."""
    return add_banking_days(day + timedelta(days=1), 0)
