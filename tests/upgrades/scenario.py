"""A shop in which everything has happened that a sandbox allows, and much is still under way.

`write_release.py` plays it on the release that is made; the releases that follow serve what it
leaves, and finish the work.
"""

from __future__ import annotations

from tests.signers import AptosWallet, EvmWallet, SolanaWallet
from tests.upgrades.partner import BASE, ORIGIN, WALLET, Partner
from tests.upgrades.shop import BUSY_HOOK, HOOK, basic

OPTIMISM, POLYGON, ARBITRUM = 10, 137, 42161
HOUR_S = 3_600
LEASE_MS = 60_000


def play_scenario(partner: Partner) -> None:
    """All of it: what is over, what is under way, and what can be read of both."""
    open_the_shop(partner)
    make_accounts(partner)
    rule_vaults(partner)
    set_payments_up(partner)
    pay_to_the_end(partner)
    take_refunds_and_disputes(partner)
    leave_work_under_way(partner)
    list_what_can_be_read(partner)


def open_the_shop(partner: Partner) -> None:
    service = partner.shop.service
    service.verify_key_ring()
    tenants = service.tenants
    app = tenants.create_app("Shop", "shop")
    partner.app_id, partner.environment_id = app.id, app.environments["sandbox"]
    _, secret = tenants.create_key(partner.environment_id, "standard", "main")
    tenants.create_key(
        partner.environment_id, "restricted", "accounts only", scopes=["v2:accounts"]
    )
    revoked, _ = tenants.create_key(partner.environment_id, "standard", "lost")
    tenants.revoke_key(partner.environment_id, revoked.id)
    tenants.set_rate_limits(partner.environment_id, {"general_minute": 500})
    service.operators.create(partner.environment_id, "shop-keeper")
    partner.auth, partner.bearer = basic(app.id, secret), f"Bearer {secret}"
    hooks = f"/v2/console/apps/{app.id}/environments/{partner.environment_id}/webhooks"
    made = partner.call("POST", hooks, {"url": HOOK, "description": "all events"})
    partner.hook = made["webhookEndpoint"]["id"]
    rotated = partner.call(
        "POST", f"/v2/console/webhooks/{partner.hook}/rotate-secret", {"overlapSeconds": 604_800}
    )
    partner.secrets[HOOK] = [rotated["signingSecret"], made["signingSecret"]]
    busy = partner.call(
        "POST", hooks, {"url": BUSY_HOOK, "subscribedEvents": ["payment.succeeded"]}
    )
    partner.busy_hook = busy["webhookEndpoint"]["id"]
    partner.secrets[BUSY_HOOK] = [busy["signingSecret"]]
    off = partner.call("POST", hooks, {"url": "https://93.184.216.34/off"})["webhookEndpoint"]
    partner.call("PATCH", f"/v2/console/webhooks/{off['id']}", {"status": "disabled"})
    partner.post(f"/v2/console/webhooks/{partner.hook}/test")


def make_accounts(partner: Partner) -> None:
    new = {"subjectType": "individual", "metadata": {"origin": "№ 1"}}
    payer = {**new, "externalUserId": "payer", "email": "payer@example.com"}
    partner.payer = partner.post("/v2/accounts", payer)["id"]
    merchant = {"externalUserId": "merchant", "subjectType": "business"}
    partner.merchant = partner.post("/v2/accounts", merchant)["id"]
    partner.gone = partner.post("/v2/accounts", {**new, "externalUserId": "gone"})["id"]
    partner.call("PATCH", f"/v2/accounts/{partner.gone}", {"status": "suspended"})
    partner.call(
        "PUT",
        f"/v2/accounts/{partner.merchant}/settlement-preferences",
        {"chainId": BASE, "assetSymbol": "USDC"},
    )
    partner.call("PUT", f"/v2/accounts/{partner.merchant}/handle", {"username": "the_shop"})
    for signer in (EvmWallet(1), SolanaWallet(1), AptosWallet(1)):
        partner.link_wallet(signer)
    extra = partner.link_wallet(EvmWallet(2))
    partner.call("DELETE", f"/v2/accounts/{partner.payer}/wallets/{extra['id']}")
    challenge = {"address": EvmWallet(3).address, "chainType": "evm"}
    partner.post(f"/v2/accounts/{partner.payer}/wallets/challenge", challenge)
    for account_id in (partner.payer, partner.merchant):
        partner.post(f"/v2/accounts/{account_id}/verifications", {})
    partner.call("POST", f"/v2/sandbox/accounts/{partner.payer}/kyc", {"status": "approved"})
    permissions = ["account:read", "payments:read", "payments:write", "vault_payments:write"]
    asked = {"externalUserId": "payer", "expiresInSeconds": 86_400, "permissions": permissions}
    token = partner.call("POST", "/v2/client-sessions", asked)["clientSessionToken"]
    exchanged = partner.call("POST", "/v2/client/auth/exchange", auth=f"Bearer {token}")
    partner.access = f"Bearer {exchanged['accessToken']}"
    partner.call("POST", "/v2/client-sessions", asked)  # never exchanged
    revoked = partner.call("POST", "/v2/client-sessions", asked)
    partner.call("DELETE", f"/v2/client-sessions/{revoked['clientSessionId']}")


def rule_vaults(partner: Partner) -> None:
    for account_id in (partner.payer, partner.merchant):
        partner.fund(account_id, "1000")
    for chain_id in (OPTIMISM, POLYGON, ARBITRUM):
        partner.fund(partner.payer, "500", chain_id)
    vaults = f"/v2/accounts/{partner.payer}/vaults"
    listed = partner.call("GET", vaults)["data"]
    vault = next(one["vaultId"] for one in listed if one["chainId"] == BASE)
    partner.vault = f"{vaults}/{vault}"
    policy = {
        "status": "active",
        "perPaymentLimit": "400",
        "dailyLimit": "900",
        "allowedChains": [BASE],
        "allowedAssets": ["USDC"],
        "version": 1,
    }
    partner.call("PUT", f"{partner.vault}/policy", policy)
    everybody = [
        {"type": "wallet", "address": WALLET},
        {"type": "account", "accountId": partner.merchant},
    ]
    replaced = {**policy, "allowedDestinations": everybody, "version": 2}
    partner.call("PUT", f"{partner.vault}/policy", replaced)
    partner.call("PUT", f"{partner.vault}/yield-settings", {"enabled": False})
    mandate = {"vaultId": vault, "amountPerPeriod": "300", "period": "month"}
    path = f"/v2/accounts/{partner.payer}/mandates"
    partner.mandate = partner.post(path, {**mandate, "reference": "rent"})["id"]
    revoked = partner.post(path, mandate)
    partner.call("DELETE", f"{path}/{revoked['id']}")


def set_payments_up(partner: Partner) -> None:
    settings = {
        "enabled": True,
        "allowedOrigins": [ORIGIN],
        "allowedDestinations": [{"type": "wallet", "chainId": BASE, "address": WALLET}],
        "minAmount": "1.00",
        "maxAmount": "500.00",
    }
    path = "/v2/partners/payment-settings"
    partner.call("PUT", path, settings)
    rules = {"feeBps": 100, "underpaymentToleranceBps": 50, "confirmations": {str(BASE): 4}}
    partner.call("PUT", path, {**settings, **rules, "branding": {"name": "Shop"}, "version": 1})


def pay_to_the_end(partner: Partner) -> None:
    """Payments of each intent whose work is over, in every status that this ends in."""
    partner.settled_atomic = partner.authorized(
        "100.00", metadata={"order": "№ 7"}, reference="order-7"
    )
    partner.disputed = partner.authorized("30.00")
    partner.send("10.00", reference="payout-1")
    partner.collect("40.00")
    partner.exact = partner.receive("20.00")
    partner.public = partner.sell_in_public("15.00")
    partner.overpaid, partner.short = partner.receive("20.00"), partner.receive("20.00")
    partner.reorged = partner.receive("20.00", chainId=ARBITRUM)
    for payment, amount in ((partner.exact, "20"), (partner.overpaid, "21"), (partner.short, "12")):
        partner.transfer(payment["escrow"]["address"], amount)
    partner.pay_in_a_browser(partner.public, "15")
    partner.transfer(partner.reorged["escrow"]["address"], "20", ARBITRUM)
    address = partner.deposit_address(BASE)
    partner.transfer(address, "7")
    partner.advance(60)
    body = {"chainId": ARBITRUM, "depth": 50, "reinclude": True}
    partner.post("/v2/sandbox/reorgs", body)
    cancelled = partner.receive("9.00")
    partner.post(f"/v2/payments/{cancelled['id']}/cancel")
    partner.receive("8.00", expiresInSeconds=300)  # expires
    partner.late = partner.receive("20.00", expiresInSeconds=300)
    reverted = partner.authorized("11.00")
    partner.fail("transfer", BASE)
    partner.run()
    partner.advance(2 * HOUR_S)
    assert partner.status(f"/v2/payments/{partner.settled_atomic['id']}") == "succeeded"
    assert partner.status(f"/v2/payments/{reverted['id']}") != "succeeded"
    partner.transfer(partner.late["escrow"]["address"], "20")
    partner.advance(60)


def take_refunds_and_disputes(partner: Partner) -> None:
    partner.refund(partner.settled_atomic, "10.00")
    partner.refund(partner.settled_atomic, "5.00")
    partner.post(f"/v2/payments/{partner.overpaid['id']}/reconcile", {"action": "refund_excess"})
    partner.post(f"/v2/payments/{partner.short['id']}/reconcile", {"action": "accept"})
    for payment, resolved in ((partner.disputed, True), (partner.exact, False)):
        session = partner.call("GET", f"/v2/payments/{payment['id']}")["sessionId"]
        path = f"/v2/sessions/{session}/dispute"
        partner.post(path, {"reason": "not delivered"}, auth=partner.bearer)
        if resolved:
            partner.post(f"{path}/resolve", {"resolution": "won"})
    partner.advance(HOUR_S)


def leave_work_under_way(partner: Partner) -> None:
    """Work in every stage; the worker does not come after the last of it."""
    deposits = f"/v2/accounts/{partner.payer}/deposits?limit=1"
    address = partner.deposit_address(POLYGON)
    partner.fail("broadcast", POLYGON, times=8)
    partner.transfer(address, "33", POLYGON)
    partner.run_until(lambda: partner.status(deposits) == "confirmed")
    partner.under_way("deposit that is not swept", deposits, "confirmed", "settled")

    partly = partner.receive("50.00")
    partner.transfer(partly["escrow"]["address"], "20")
    executing = f"/v2/payments/{partner.authorized('24.00')['id']}"
    partner.run_until(lambda: partner.status(executing) == "executing")
    partner.under_way("Payment that is executing", executing, "executing", "succeeded")
    sent_refund = partner.refund(partner.settled_atomic, "3.00")
    refunds = f"/v2/payments/{partner.settled_atomic['id']}/refunds"
    partner.run_until(lambda: partner.of(refunds, sent_refund["id"])["status"] != "created")
    sent = f"/v2/payments/{partner.authorized('22.00')['id']}"
    partner.run_until(lambda: partner.operation(sent) not in ("authorized", "created"))
    submitted = f"/v2/payments/{partner.send('6.00')['id']}"
    partner.run_until(lambda: partner.status(submitted) == "executing")
    partner.fail("lost_answer", OPTIMISM)
    lost = f"/v2/payments/{partner.authorized('13.00', chainId=OPTIMISM)['id']}"
    partner.run_until(lambda: partner.operation(lost) == "unknown")

    # From here on no job runs, and one was begun by a worker that was killed.
    collected = f"/v2/payments/{partner.collect('12.00')['id']}"
    now, storage = partner.shop.clock.now(), partner.shop.storage
    assert storage.claim("sandbox.chain", now, lease_ms=LEASE_MS, limit=1, lane_concurrency=1)
    authorized = f"/v2/payments/{partner.authorized('23.00')['id']}"
    created = f"/v2/payments/{partner.send('5.00')['id']}"
    partner.refund(partner.disputed, "4.00")
    found = partner.receive("14.00")
    partner.pay_in_a_browser(found, "14")
    public = partner.sell_in_public("18.00")
    offered = partner.receive("16.00")
    partner.option(offered)
    partner.receive("17.00", expiresInSeconds=900)
    partner.post("/v2/accounts", {"externalUserId": "last", "subjectType": "individual"})
    for what, target, end in (
        ("funding that is authorized and not sent", authorized, "succeeded"),
        ("funding that is sent and not final", sent, "succeeded"),
        ("funding whose broadcast was not answered", lost, "succeeded"),
        ("send that is submitted", submitted, "succeeded"),
        ("send that is not submitted", created, "succeeded"),
        ("collect that is not sent", collected, "succeeded"),
        ("transfer that is not found yet", f"/v2/payments/{found['id']}", "succeeded"),
        ("Payment that is paid in part", f"/v2/payments/{partly['id']}", "action_required"),
        ("Payment that nobody pays", f"/v2/payments/{offered['id']}", "expired"),
        ("public Payment that nobody pays", f"/v2/payments/{public['id']}", "expired"),
        ("refund that is not sent", f"/v2/payments/{partner.disputed['id']}/refunds", "succeeded"),
        ("refund that is sent and not final", refunds, "succeeded"),
        (
            "delivery that is retried",
            f"/v2/console/webhooks/{partner.busy_hook}/deliveries",
            "delivered",
        ),
    ):
        partner.under_way(what, target, partner.status(target), end)


def list_what_can_be_read(partner: Partner) -> None:
    listed = partner.call("GET", "/v2/payments?limit=100")
    assert not listed["hasNextPage"]
    for payment in listed["data"]:
        path = f"/v2/payments/{payment['id']}"
        for part in ("", "/receipts", "/refunds"):
            partner.can_be_read(path + part)
        if payment["sessionId"]:
            partner.can_be_read(f"/v2/sessions/{payment['sessionId']}")
    for account_id in (partner.payer, partner.merchant, partner.gone):
        path = f"/v2/accounts/{account_id}"
        partner.can_be_read(path)
        for part in (
            "balances", "capabilities", "deposits", "deposit-addresses", "mandates", "vaults",
            "verifications", "wallets",
        ):  # fmt: skip
            partner.can_be_read(f"{path}/{part}")
    for version in ("", "?version=1", "?version=2"):
        partner.can_be_read(f"{partner.vault}/policy{version}")
    partner.can_be_read(f"{partner.vault}/yield-settings")
    for target in (
        "/v2/payments?limit=100",
        "/v2/accounts",
        "/v2/partners/config",
        "/v2/partners/payment-settings",
        "/v2/sandbox",
        "/v2/console/webhooks",
        "/v2/console/events?limit=100",
        f"/v2/console/webhooks/{partner.hook}/deliveries?limit=100",
        f"/v2/console/webhooks/{partner.busy_hook}/deliveries?limit=100",
    ):
        partner.can_be_read(target)
    partner.can_be_read("/v2/client/me", partner.access)
    path = f"/v2/public/payments/{partner.public['id']}"
    for part in ("", "/state", "/methods"):
        partner.can_be_read(path + part, f"Bearer {partner.public['clientSecret']}")
