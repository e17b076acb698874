"""Gives made-up requests what no schema can know: credentials that open, and names that are there.

What is chosen follows from the request alone, so that it is chosen again when the case is.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation

from payments_core_http.errors import LEGACY_PREFIX
from payments_core_http.routing import PATH_IDS
from tests.fuzz.shop import Shop
from tests.http.authorization.populated_environment import BASE, HOOK, ORIGIN, PAYEE
from tests.signers import EvmWallet

if TYPE_CHECKING:
    from schemathesis import AuthContext, Case

MARK = "unproven:"
HEADERS = {"paymentSecretHeader": "X-Service-Payment-Secret", "sdkKey": "X-SDK-Key"}
"""Where a scheme's credential goes that does not go where all others do."""

IN_BODIES = (
    "accountId", "actionId", "challengeId", "mandateId", "paymentId", "signature", "vaultId",
    "webhookId",
)  # fmt: skip
"""What a body names of a corner."""

LIKELY: Mapping[str, Sequence[Any]] = {
    "address": (PAYEE,),
    "advanceSeconds": (60, 3_600, 86_400),  # a year of hourly work takes seconds
    "allowedOrigins": ([ORIGIN],),
    "amount": ("1.00", "5.00", "0.000001", "25.5"),
    "amountPerPeriod": ("5.00",),
    "assetSymbol": ("USDC",),
    "cancelUrl": (f"{ORIGIN}/cancelled",),
    "chainId": (BASE,),
    "filters": ([{"field": "payload.amountAtomic", "op": ">=", "value": "1"}], []),
    "externalUserId": ("shop-buyer", "shop-seller"),
    "destinationChainID": (BASE, 137),
    "destinationPaymentAddress": ("shop_seller@shop",),
    "destinationToken": ("USDC",),
    "destinationWalletAddress": (PAYEE,),
    "payerAddress": (PAYEE,),
    "paymentAddress": ("shop_seller@shop",),
    "rawAmount": ("1000000", "25000000"),
    "routingNumber": ("021000021",),
    "since": ("2026-09-21T14:00:00Z",),
    "sourceAddress": (PAYEE,),
    "sourceChainId": (BASE,),
    "sourceChainToken": ("USDC",),
    "successUrl": (f"{ORIGIN}/paid",),
    "to": (PAYEE,),
    "userAddress": (PAYEE,),
    "url": (f"{HOOK}/c", "http://127.0.0.1:9/hook"),
    "preferredSettlementChain": (BASE,),
    "preferredSettlementToken": ("USDC",),
    "username": ("shopper",),
}
"""Values that lead further than made-up ones, by the name of their field."""

QUOTED: Mapping[str, str] = {"quoteId": "quoteId", "depositAddress": "quoteAddress"}
"""What names the shop's quote."""

_SIGNER = EvmWallet(98)
SIGNED: Mapping[str, str] = {
    "address": _SIGNER.address,
    "chainType": "evm",
    "message": "Link my wallet.",
    "signature": _SIGNER.sign("Link my wallet."),
}
"""Fields that prove something together."""

ALWAYS = ("cancelUrl", "successUrl")
"""Fields that are never left as made up: bodies take any text behind `https://`, and answers say
that what they repeat is a `uri`."""


class Dresser:
    """Dresses requests for one shop."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def dress(self, case: Case) -> None:
        """Name what is there, in most of the requests that are not meant to be wrong in that."""
        dice, meta = Dice(case), case.meta
        corner = self._corner(dice, case)
        if meta is None or not meta.is_negative_at(ParameterLocation.PATH):
            path = {
                name: self._id(dice, corner, name, text)
                for name, text in case.path_parameters.items()
            }
            if path != case.path_parameters:
                case.path_parameters = path
        if meta is not None and meta.generation.mode.is_positive:
            case.body = self._filled(dice, corner, case.body)
            if case.path.startswith(LEGACY_PREFIX):  # it names objects there, having no other place
                case.query = self._filled(dice, corner, case.query)
        is_good = meta is not None and meta.generation.mode.is_positive
        if case.path == "/sdk/v1/add-address" and is_good and dice.roll("sign") < 90:
            case.body = {**case.body, **SIGNED}
            case.body.pop("publicKey", None)
        if case.path == "/sdk/v1/settle" and is_good and dice.roll("sign") < 90:
            case.body = self._shop.settlement
        if case.path == "/sdk/v1/deploy-role-module" and is_good and dice.roll("sign") < 90:
            case.body = self._shop.role_module
        if case.path == "/v2/public/apps/{appId}/payments" and dice.roll("origin") < 90:
            case.headers["Origin"] = ORIGIN
        for name, value in case.headers.items():
            if isinstance(value, str) and value.startswith(MARK):
                case.headers[name] = self._proof(dice, corner, value.removeprefix(MARK), case)

    def _corner(self, dice: Dice, case: Case) -> Mapping[str, str]:
        """Names that belong together: those that the path has already, if it has any."""
        known = {text for text in case.path_parameters.values() if text in self._shop.seen}
        corners = self._shop.corners
        fitting = [corner for corner in corners if known <= set(corner.values())]
        return dice.one("corner", fitting or corners)

    def _proof(self, dice: Dice, corner: Mapping[str, str], scheme: str, case: Case) -> str:
        """A header of a credential that opens."""
        shop = self._shop
        if scheme == "appSecret":
            return shop.basic(shop.restricted if dice.roll("key") < 5 else None)
        if scheme == "appId":
            return f"Basic {base64.b64encode(shop.app_id.encode()).decode()}"
        if scheme == "appSecretAsBearer":
            return f"Bearer {shop.populated.secret}"
        if scheme in ("accessToken", "sessionToken"):
            made = shop.access_token if scheme == "accessToken" else shop.session_token
            return f"Bearer {made(corner['accountId'])}"
        if scheme == "sdkKey":
            return shop.sdk_key
        secret = shop.payment_secret(str(case.path_parameters.get("paymentId")))
        return secret if scheme in HEADERS else f"Bearer {secret}"

    def _id(self, dice: Dice, corner: Mapping[str, str], name: str, text: Any) -> Any:
        """A name of the shop's in place of one that nothing has; a foreign one now and then."""
        if text in self._shop.seen or not PATH_IDS[name].is_valid(str(text)):
            return text
        roll = dice.roll(name)
        if roll < 80 or name in ("appId", "code"):
            return corner[name]
        return self._shop.foreign.get(name, text) if roll < 90 else text

    def _filled(self, dice: Dice, corner: Mapping[str, str], value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._filled(dice, corner, item, key) for key, item in value.items()}
        if value is None or value in ("", []):
            return value
        if name not in ALWAYS and dice.roll(f"{name}?") < 15:
            return value
        if name in IN_BODIES and value not in self._shop.seen:
            return corner[name]
        if name in ("userId", "destinationUserId"):
            return corner["accountId"]
        if name == "transactionId":
            return corner["paymentId"].replace("payment_", "tx_")
        if name in QUOTED:
            return self._shop.populated.ids[QUOTED[name]]
        if name == "amount" and not isinstance(value, str):
            return dice.one(name, (1, 0.1, 25.5, value))
        if name in LIKELY:
            return dice.one(name, LIKELY[name])
        if isinstance(value, list):
            return [self._filled(dice, corner, item) for item in value]
        return value


class Credentials:
    """Marks every request that must prove something with how; the dresser has the proof.

    Schemathesis asks when it makes a request, which may be long before it sends it.
    """

    def get(self, case: Case, context: AuthContext) -> Mapping[str, str] | None:
        """The headers of its credentials, unproven; None where it asks for none."""
        ways = context.operation.definition.raw.get("security") or []
        if not ways:
            return None
        schemes = Dice(case).one("way", ways)
        return {HEADERS.get(scheme, "Authorization"): MARK + scheme for scheme in schemes}

    def set(self, case: Case, data: Mapping[str, str], context: AuthContext) -> None:
        """Put them on."""
        case.headers.update(data)


class Dice:
    """Chances that a request decides by what it is."""

    def __init__(self, case: Case) -> None:
        body = None if isinstance(case.body, NotSet) else case.body  # its repr has an address
        parts = (case.method, case.path, case.path_parameters, case.query, body)
        self._text = repr(parts).encode("utf-8", "surrogatepass")

    def roll(self, what: str) -> int:
        """0 to 99."""
        return zlib.crc32(what.encode() + self._text) % 100

    def one(self, what: str, among: Sequence[Any]) -> Any:
        """One of several."""
        return among[zlib.crc32(self._text + what.encode()) % len(among)]
