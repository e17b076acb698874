"""What is refused although the document allows it: rules of which a schema cannot speak.

Schemathesis expects that whatever fits the document is taken. 422, 424 and 409 are the business's
answers, and documented where they can come; a 400 must be for one of the reasons here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from schemathesis import Case, CheckContext, Response
from schemathesis.core.failures import Failure

ADDRESS = "An address's form depends on its chain type, which stands in another field."
GIVEN_BEFORE = "It must be what an earlier answer gave."
OF_OTHERS = "Which fields belong together depends on the value of one of them."
CLOCK = "What lies ahead or behind depends on when it is asked."

REASONS: Mapping[tuple[str, str, str], str] = {
    (".*", ".*", "must not contain U[+]0000|has a key that must not contain U[+]0000"): (
        "No text holds U+0000, which storage cannot keep; said once for all in the document."
    ),
    (".*", ".*", "must have printable characters only|must not be blank"): (
        "Which characters are printable grows with Unicode: no pattern says it."
    ),
    (".*", ".*", "must be an integer within .*"): (
        "A whole number written with a point, as 1.0, is an integer to JSON Schema and none here."
    ),
    (".*", ".*", "must be an integer or a string"): (
        "A whole number written with a point is not accepted here either."
    ),
    ("settleLegacyQuote", "(domain|types|payload)[.].*|signature", "must be .*|is not .*"): (
        "What was signed must be the settlement of this quote, on its chain, by its payer's vault."
    ),
    (".*", "query", "must not contain a credential.*"): (
        "What looks like a credential is refused in every URL, whatever it is called."
    ),
    (".*", "username", "is reserved"): "Which names are reserved is no part of the contract.",
    (
        ".*",
        r"address|addresses\[\]",
        "must (be an EVM|be 0x|be base58|have a|not be).*",
    ): ADDRESS,
    ("registerLegacyUser", r"addresses\[\]", "is given twice"): (
        "Two addresses in other letters may be one."
    ),
    (".*", "paymentAddress", "must be a payment address: .*"): (
        "A pattern for what stands before and behind the @ would be read by nobody."
    ),
    ("addLegacyAddress", "signature|publicKey", ".*"): ADDRESS,
    ("setLegacyPreferences", "preferredSettlementChain", "is required, .*"): OF_OTHERS,
    (
        "createPublicOption",
        "chainId|assetSymbol|(payer|refund)Address",
        "is (not|required) for the method .*",
    ): OF_OTHERS,
    ("decideSandboxPayout", "code", "is for a return, .*"): OF_OTHERS,
    ("deployLegacyRoleModule", r"txData[.](to|value|data|operation)", ".*"): (
        "An owner signs one call for each vault; which one follows from its address."
    ),
    ("addOnramp", "destination[.]address", "must be left out: .*|is required for a wallet"): (
        OF_OTHERS
    ),
    ("depositAtSandboxBank", "amount", "must be dollars greater than zero, .*"): (
        "An amount has one form in the whole document; dollars have two decimals of it."
    ),
    ("listLegacyTransactions", "page", "reaches no further than .*"): (
        "How far a page reaches depends on how long pages are."
    ),
    (
        "read(Balance|Transaction|Payout)Report",
        "from|to",
        "must be .*|must not be later than .*|is not closed yet: .*",
    ): "Which days are closed, and what they are compared with, no schema says.",
    ("listLegacyTransactions", "before", "is not a transaction"): GIVEN_BEFORE,
    (
        "readLegacyUser|readLegacyKyc",
        "userId|username|paymentAddress",
        "is required, .*|cannot be given together .*",
    ): "Which parameters of a query exclude each other is said in words.",
    (
        "createLegacyQuote|createLegacyDepositAddress|verifyLegacyTransfer|readLegacyTransfer"
        "|readLegacyBalances",
        "(source|destinationWallet|deposit|user)Address",
        "must (be an EVM|be 0x|be base58|not be).*",
    ): ADDRESS,
    ("createLegacyQuote", "destinationPaymentAddress", "must be a payment address: .*"): (
        "A pattern for what stands before and behind the @ would be read by nobody."
    ),
    (
        "createLegacyQuote",
        "amount",
        "must have at most .* decimals|must be a positive number .*|must be a decimal string .*",
    ): "How many digits an amount may have depends on its token.",
    ("readLegacyBalances", "amount", "must be a decimal number .*"): (
        "A query's number has no exponent."
    ),
    ("verifyLegacyTransfer|readLegacyTransfer", "chainId", "is required with .*|cannot be .*"): (
        OF_OTHERS
    ),
    (
        "readLegacyTransfer",
        "quoteId|depositAddress",
        "is required, .*|cannot be given together .*",
    ): "Which parameters of a query exclude each other is said in words.",
    (".*", "cursor", "is not a cursor of this list"): GIVEN_BEFORE,
    (
        "(create|change)Webhook",
        r"filters(\[\][.](op|field|value|values(\[\])?))?",
        "is no field of an event|compares numbers .*|is required with .*|must be .*"
        "|must have at most .* bytes .*",
    ): "Which rules an event can satisfy follows from the catalogue.",
    ("listEvents", "after", "is not a cursor of .*"): GIVEN_BEFORE,
    (
        "listEvents",
        "cursor|name|accountId|created(After|Before)|ids",
        "cannot be given together with after",
    ): "Which parameters of a query exclude each other is said in words.",
    (".*", "(.*[.])?(address|payerAddress|to|from)", "must be (0x and|base58 of) .*"): ADDRESS,
    ("createRefund|returnDeposit|reconcilePayment", "destination", "must be 0x and .*"): ADDRESS,
    ("reconcilePayment", "destination|receiptId", "is (only|required) for .*"): OF_OTHERS,
    (
        "createRefund|returnDeposit|reconcilePayment",
        "destination",
        "must not be (the recipient's own|an) address.*|must not be the account's own vault",
    ): "Whose address it is decides, which no document knows.",
    ("createWalletChallenge", "chainId", "is for EVM wallets only"): OF_OTHERS,
    (".*", "(.*[.])?(address|payerAddress|destination)", "must not be the contract of a token"): (
        "Which tokens there are grows: it is no part of the contract."
    ),
    ("addWallet", "signature|publicKey", ".*"): ADDRESS,
    (
        "addBankAccount",
        "routingNumber",
        ".*",
    ): "Its digits must agree with each other, and be given out.",
    (
        "addBankAccount",
        "accountHolderName|bankName|address[.](line1|line2|city)",
        "must be in printable ASCII, .*|must have 1 to (22|35) characters",
    ): "The contract took more once; the requirements of bank accounts say what ACH carries.",
    ("createPayment", "destination[.](achReference|wireMessage)", "must be in .*"): (
        "The contract took more once; its description says what the rail carries."
    ),
    ("createPayment", "destination[.]bankAccountId", "has a holder whose name .*"): OF_OTHERS,
    ("addBankAccount", "address[.]state", "must be a state as .*"): (
        "The requirements of bank accounts list the states; the pattern says two letters."
    ),
    ("submitPublicTransaction", "transactionHash", "must be 0x and .*"): ADDRESS,
    ("createAccount", r"wallets\[\]", "is given twice"): "Objects that differ may be one wallet.",
    ("createAccount", r"wallets\[\][.]address", "is given twice"): (
        "Two addresses in other letters may be one."
    ),
    (
        ".*",
        "(.*[.])?(amount|minAmount|maxAmount|.*Limit|amountPerPeriod)",
        "must have at most .*",
    ): ("How many decimals an amount may have depends on its asset."),
    (".*", "minAmount|maxAmount|.*Limit|amountPerPeriod|amount", "must be greater than zero.*"): (
        "A pattern that leaves out each way to write zero would be read by nobody."
    ),
    ("replacePaymentSettings", "minAmount|maxAmount", "must .*"): OF_OTHERS,
    ("replacePaymentSettings|replaceVaultPolicy", r"\w+\[\]", "is given twice"): (
        "Elements that differ in their letters may be one."
    ),
    (
        "replacePaymentSettings|replaceVaultPolicy",
        r"(.*[.])?(\w*[cC]hains|\w*[aA]ssets|confirmations|chainId)\S*",
        "is not a supported .*",
    ): "What is supported grows: it is no part of the contract.",
    ("replacePaymentSettings", "branding[.]currency", "must be a currency of ISO 4217, .*"): (
        "Which currencies are in use changes: a pattern has the form of their codes alone."
    ),
    ("replacePaymentSettings", "branding[.]logoUrl", "must have at most .*"): (
        "The document gives it the length of every URL, of which the host may be but a part."
    ),
    (
        "replacePaymentSettings|createPublicPayment|createPayment|createOwnPayment",
        r"successUrl|cancelUrl|branding[.]logoUrl|allowedOrigins\[\]",
        "must (be scheme|name a (valid )?host|be https|not contain cred|have a port|leave).*",
    ): "Origins are compared as browsers send them, which no pattern describes.",
    (
        ".*",
        "successUrl|cancelUrl|returnUrl|branding[.]logoUrl",
        "must (have its|not contain|name a host|be ASCII|be an absolute).*",
    ): "The contract took more once; each fault of a URL has its own sentence.",
    ("createMandate", "expiresAt", "must be in the future, .*"): CLOCK,
    ("recoverWebhook", "since", "must (not be in the future|be at most 30 days ago)"): CLOCK,
    (
        "createWebhook",
        "url",
        "(must|has|is) .*",
    ): "What a URL is, is decided by reading it.",
    ("createOwnPayment", "destination[.]accountId", "must be the token's own account"): (
        "It depends on who asks."
    ),
    ("createOwnPayment", "metadata", "cannot be set with a client token"): (
        "The contract took it once, and a dated contract takes nothing away from its document."
    ),
    ("createPayment", "destination[.]paymentAddress", "must be a payment address.*"): (
        "The contract describes any text; it only takes additions."
    ),
    ("createPayment", "destination", "must not be the source itself"): OF_OTHERS,
    ("createPayment", "destination[.](achReference|wireMessage)", "is for the rail .*"): OF_OTHERS,
    ("failSandboxDependency", "operation|chainId", "must be one of .*|is only for .*"): OF_OTHERS,
    ("triggerSandboxEvent", "accountId|paymentId", "is not a field of this event"): OF_OTHERS,
    ("makeSandboxTransfer", "from", "must be an external wallet.*"): (
        "It depends on whose address it is."
    ),
}
"""Why, by the operation, the field and what is said of it, each as a regular expression."""


def refuses_only_for_a_reason(ctx: CheckContext, response: Response, case: Case) -> None:
    """Fail on a 400 to a good request for which no reason is written down."""
    meta = case.meta
    if response.status_code != 400 or meta is None or not meta.generation.mode.is_positive:
        return
    answered = response.json()
    error = answered.get("error", {"code": "of another form", "details": {}})
    if isinstance(error, str):  # the legacy form, whose sentence begins with the field
        first = re.sub(r" \(and \d+ more\)$", "", error.removesuffix("."))
        path, _, message = first.partition(" ")
        error = {"details": {"fields": [{"path": path, "message": message}]}}
    fields = error["details"].get("fields") or [{"path": "", "message": error["code"]}]
    name = case.operation.definition.raw["operationId"]
    for field in fields:
        path = re.sub(r"\[\d+\]|\.\d+\b", "[]", field["path"])
        facts = (name, path, field["message"])
        if not any(all(map(_fits, row, facts)) for row in REASONS):
            raise Failure(
                operation=case.operation.label,
                title="A good request was refused for a reason that is not written down",
                message=f"{name} {path!r}: {field['message']}",
            )


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.DOTALL) is not None
