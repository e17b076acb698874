"""What an authority can do in its environment: a class per resource, a row per operation.

The names are those of the typed client (`docs/client/names.py`), so that a program reads alike in
process and over HTTP. Each row leads to the operation of a part (`operation.py`).
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from payments_core import inbox, search
from payments_core.accounts import address_balances, directory
from payments_core.accounts import operations as accounts
from payments_core.accounts import wallets as wallet_operations
from payments_core.accounts.bank_accounts import operations as bank_accounts
from payments_core.accounts.capabilities import operations as capabilities
from payments_core.accounts.vaults import operations as vaults
from payments_core.accounts.vaults import policies, provisioning, yields
from payments_core.accounts.verification import operations as verifications
from payments_core.books import reports
from payments_core.deposits import operations as deposits
from payments_core.legacy.role_modules import operations as role_modules
from payments_core.legacy.settlements import operations as settlements
from payments_core.legacy.transactions import operations as legacy_transactions
from payments_core.onramps import operations as onramps
from payments_core.operation import OpenResource, Resource, bound, opened
from payments_core.payment_settings import operations as payment_settings
from payments_core.payments import collects, sends
from payments_core.payments import operations as payments
from payments_core.payments.checkout import checkout, public
from payments_core.payments.checkout import options as public_options
from payments_core.payments.disputes import operations as disputes
from payments_core.payments.mandates import operations as mandates
from payments_core.payments.paying import authorization as funding
from payments_core.payments.paying import vault_options as options
from payments_core.payments.record import Payment
from payments_core.payments.refunding import operations as refunds
from payments_core.payments.refunding import reconciliation
from payments_core.quotes import operations as quotes
from payments_core.sandbox import operations as sandbox
from payments_core.screening import operations as screening
from payments_core.tenants import audit_trail, client_sessions, keys, request_log
from payments_core.tenants.authorization import Authority
from payments_core.validation.arguments import check_arguments
from payments_core.webhooks import feed
from payments_core.webhooks import operations as webhooks
from payments_core.webhooks.dispatch import replay
from payments_core.webhooks.filters import EventFilters
from payments_core.webhooks.handler_endpoints import HandlerEndpoints, HandlerName
from payments_core.webhooks.handlers import Handle
from payments_core.webhooks.operations import SubscribedEvents
from payments_core.webhooks.record import Endpoint

Kind = TypeVar("Kind", bound=Resource)


class PaymentSettings(Resource):
    """The settings for Payments: fee, tolerance, limits, origins.

    >>> shop.payment_settings.read().settings_version
    0
    >>> shop.payment_settings.replace(PaymentTerms(tolerance_bps=50)).settings_version
    1
    """

    read: Final = bound(lambda p: p.payment_settings, payment_settings.PartnerPaymentSettings.read)
    replace: Final = bound(
        lambda p: p.payment_settings, payment_settings.PartnerPaymentSettings.replace
    )


class Keys(Resource):
    """Restricted keys. Standard keys are made with `service.tenants`, or on the command line.

    >>> key, secret = shop.keys.create("reports", scopes=("v2:payments",))
    >>> key.kind, key.scopes
    ('restricted', ('v2:payments',))
    >>> shop.keys.revoke(key.id).revoked_at is None
    False
    """

    create: Final = bound(lambda p: p.keys, keys.EnvironmentKeys.create_restricted)
    revoke: Final = bound(lambda p: p.keys, keys.EnvironmentKeys.revoke_restricted)


class ClientSessions(Resource):
    """Tokens with which a browser acts for one account, for a limited time.

    >>> created = server.client_sessions.create(external_user_id="eve", expires_in_s=600)
    >>> revoked = server.client_sessions.revoke(created.session.id)
    """

    create: Final = bound(lambda p: p.client_sessions, client_sessions.ClientSessions.create)
    revoke: Final = bound(lambda p: p.client_sessions, client_sessions.ClientSessions.revoke)


class Accounts(Resource):
    """The partner's users; each has a vault on every chain.

    >>> shop.accounts.read(bob.id).account.kyc_status
    'approved'
    >>> shop.accounts.find_by_payment_address("bob@shop").account.external_user_id
    'bob'
    >>> shop.accounts.change(bob.id, email="bob@example.com").account.email
    'bob@example.com'
    """

    create: Final = bound(lambda p: p.accounts, accounts.Accounts.create)
    list: Final = bound(lambda p: p.accounts, accounts.Accounts.list)
    list_briefly: Final = bound(lambda p: p.accounts, accounts.Accounts.list_briefly)
    read: Final = bound(lambda p: p.accounts, accounts.Accounts.get)
    change: Final = bound(lambda p: p.accounts, accounts.Accounts.update)
    read_balances: Final = bound(lambda p: p.vaults, vaults.Vaults.balances)
    read_capabilities: Final = bound(lambda p: p.capabilities, capabilities.Capabilities.list)
    set_handle: Final = bound(lambda p: p.accounts, accounts.Accounts.set_username)
    set_settlement: Final = bound(lambda p: p.accounts, accounts.Accounts.set_settlement)
    adjust_settlement: Final = bound(lambda p: p.accounts, accounts.Accounts.adjust_settlement)
    find_by_handle: Final = bound(
        lambda p: p.account_directory, directory.AccountDirectory.find_by_username
    )
    find_by_payment_address: Final = bound(
        lambda p: p.account_directory, directory.AccountDirectory.find_by_payment_address
    )
    find_by_wallet: Final = bound(
        lambda p: p.account_directory, directory.AccountDirectory.find_by_wallet
    )
    is_handle_free: Final = bound(
        lambda p: p.account_directory, directory.AccountDirectory.is_username_free
    )


class Wallets(Resource):
    """The wallets that accounts have proven to hold, and the challenges to prove it.

    >>> address = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
    >>> challenge = shop.wallets.create_challenge(bob.id, address, "evm")
    >>> shop.wallets.add(bob.id, challenge.id, signature="0x" + "11" * 65)
    Traceback (most recent call last):
    payments_core.errors.ValidationFailed: ...
    """

    add: Final = bound(lambda p: p.wallets, wallet_operations.Wallets.add)
    add_by_message: Final = bound(lambda p: p.wallets, wallet_operations.Wallets.add_by_message)
    list: Final = bound(lambda p: p.wallets, wallet_operations.Wallets.list)
    create_challenge: Final = bound(lambda p: p.wallets, wallet_operations.Wallets.challenge)
    remove: Final = bound(lambda p: p.wallets, wallet_operations.Wallets.remove)


class Verifications(Resource):
    """The identity checks of accounts, by a KYC provider.

    >>> started = shop.verifications.start(eve.id, idempotency_key="kyc-eve")
    >>> shop.verifications.decide(eve.id, "approved", verification_id=started.id).status
    'approved'
    """

    start: Final = bound(lambda p: p.verifications, verifications.Verifications.start)
    list: Final = bound(lambda p: p.verifications, verifications.Verifications.list)
    list_pending: Final = bound(lambda p: p.verifications, verifications.Verifications.list_pending)
    read: Final = bound(lambda p: p.verifications, verifications.Verifications.get)
    decide: Final = bound(lambda p: p.verifications, verifications.Verifications.decide)


class Screening(Resource):
    """What screening holds or has stopped, and an operator's decisions on it.

    >>> shop.screening.list_held("blocked")
    Page()
    """

    list_held: Final = bound(lambda p: p.screening, screening.ScreeningDecisions.list)
    read_held: Final = bound(lambda p: p.screening, screening.ScreeningDecisions.get)
    decide: Final = bound(lambda p: p.screening, screening.ScreeningDecisions.decide)


class Search(Resource):
    """Records by what people have of them: an id, a reference, an address, a transaction.

    >>> shop.search.find(paid.id)
    (Found(kind='payment', id='payment_...', within=None),)
    """

    find: Final = bound(lambda p: p.search, search.Search.find)


class Inbox(Resource):
    """What waits for a person: Payments to decide about, held transfers, failing endpoints.

    >>> shop.inbox.count()["endpoints"]
    0
    >>> shop.inbox.list().payments
    ()
    """

    count: Final = bound(lambda p: p.inbox, inbox.Inbox.count)
    list: Final = bound(lambda p: p.inbox, inbox.Inbox.list)


class BankAccounts(Resource):
    """US bank accounts of accounts, as the bank reviews them.

    >>> shop.bank_accounts.activate(bob.id, "us_bank_payout").capability.status
    'active'
    >>> shop.bank_accounts.list(bob.id)
    Page()
    """

    activate: Final = bound(lambda p: p.capabilities, capabilities.Capabilities.activate)
    read_requirements: Final = bound(
        lambda p: p.bank_accounts, bank_accounts.BankAccounts.requirements
    )
    add: Final = bound(lambda p: p.bank_accounts, bank_accounts.BankAccounts.add)
    list: Final = bound(lambda p: p.bank_accounts, bank_accounts.BankAccounts.list)


class Onramps(Resource):
    """Account numbers at the bank whose incoming transfers are credited as stablecoins.

    >>> shop.onramps.read_requirements(bob.id).reasons
    ('capability_not_active',)
    """

    read_requirements: Final = bound(
        lambda p: p.onramp_accounts, onramps.OnrampAccounts.requirements
    )
    add: Final = bound(lambda p: p.onramp_accounts, onramps.OnrampAccounts.add)
    list: Final = bound(lambda p: p.onramp_accounts, onramps.OnrampAccounts.list)
    read_instructions: Final = bound(
        lambda p: p.onramp_accounts, onramps.OnrampAccounts.read_instructions
    )
    list_transactions: Final = bound(
        lambda p: p.onramp_accounts, onramps.OnrampAccounts.list_transactions
    )
    list_incoming: Final = bound(lambda p: p.onramp_accounts, onramps.OnrampAccounts.list_incoming)
    read_incoming: Final = bound(lambda p: p.onramp_accounts, onramps.OnrampAccounts.read_incoming)


class Vaults(Resource):
    """The vaults of accounts, their policies and yield settings.

    >>> [vault.chain_id for vault in shop.vaults.list(eve.id).records]
    [1, 10, 137, 8453, 42161]
    >>> shop.vaults.read_policy(eve.id, vault.id).policy.status
    'active'
    """

    list: Final = bound(lambda p: p.vault_provisioning, provisioning.VaultProvisioning.list)
    provision: Final = bound(
        lambda p: p.vault_provisioning, provisioning.VaultProvisioning.provision
    )
    read_policy: Final = bound(lambda p: p.vault_policies, policies.VaultPolicies.read)
    replace_policy: Final = bound(lambda p: p.vault_policies, policies.VaultPolicies.replace)
    read_yield_settings: Final = bound(lambda p: p.vault_yields, yields.VaultYields.read)
    replace_yield_settings: Final = bound(lambda p: p.vault_yields, yields.VaultYields.replace)


class Mandates(Resource):
    """Standing approvals to collect from a vault.

    >>> daily = NewMandate(vault_id=vault.id, amount_per_period="10.00", period="day")
    >>> mandate = shop.mandates.create(eve.id, daily).mandate
    >>> shop.mandates.revoke(eve.id, mandate.id).status
    'revoked'
    """

    create: Final = bound(lambda p: p.mandates, mandates.Mandates.create)
    list: Final = bound(lambda p: p.mandates, mandates.Mandates.list)
    revoke: Final = bound(lambda p: p.mandates, mandates.Mandates.revoke)


class Deposits(Resource):
    """Deposit addresses of accounts, and the transfers that arrived there.

    >>> address = shop.deposits.issue_address(bob.id, 8453).address.address
    >>> sent = shop.sandbox.transfer(8453, "USDC", "3.00", to=address)
    >>> [deposit.status for deposit in shop.deposits.check(bob.id).deposits]
    ['detected']
    """

    issue_address: Final = bound(lambda p: p.deposits, deposits.Deposits.issue_address)
    list_addresses: Final = bound(lambda p: p.deposits, deposits.Deposits.list_addresses)
    check: Final = bound(lambda p: p.deposits, deposits.Deposits.check)
    send_back: Final = bound(lambda p: p.deposits, deposits.Deposits.send_back)
    list: Final = bound(lambda p: p.deposits, deposits.Deposits.list_deposits)


class Payments(Resource):
    """Payments of every intent: received, sent and collected; their refunds and exceptions.

    >>> made = shop.payments.receive(order, idempotency_key="order-7")
    >>> shop.payments.receive(order, idempotency_key="order-7") == made
    True
    >>> shop.payments.cancel(made.payment.id).payment.status
    'cancelled'
    """

    receive: Final = bound(lambda p: p.payments, payments.Payments.create)
    send: Final = bound(lambda p: p.sends, sends.Sends.create)
    collect: Final = bound(lambda p: p.collects, collects.Collects.create)
    list: Final = bound(lambda p: p.payments, payments.Payments.list)
    list_received: Final = bound(lambda p: p.payments, payments.Payments.list_received)
    list_briefly: Final = bound(lambda p: p.payments, payments.Payments.list_briefly)
    read: Final = bound(lambda p: p.payments, payments.Payments.get)
    cancel: Final = bound(lambda p: p.payments, payments.Payments.cancel)
    list_receipts: Final = bound(lambda p: p.payments, payments.Payments.list_receipts)
    reconcile: Final = bound(lambda p: p.reconciliation, reconciliation.Reconciliations.reconcile)
    list_allowed_actions: Final = bound(
        lambda p: p.reconciliation, reconciliation.Reconciliations.list_allowed
    )
    plan_action: Final = bound(lambda p: p.reconciliation, reconciliation.Reconciliations.plan)
    refund: Final = bound(lambda p: p.refunds, refunds.Refunds.create)
    refund_all: Final = bound(lambda p: p.refunds, refunds.Refunds.create_all)
    plan_refund: Final = bound(lambda p: p.refunds, refunds.Refunds.plan)
    list_refunds: Final = bound(lambda p: p.refunds, refunds.Refunds.list)

    @check_arguments
    def build_url(self, payment: Payment) -> str | None:
        """The checkout link of a receive Payment; None for a Payment that nobody can pay.

        Raises ConfigurationError without `Settings(public_url=...)`."""
        return self._parts.links.build_url(payment)


class Options(Resource):
    """The ways to pay a Payment from the payer's vault.

    >>> made = shop.payments.receive(order).payment
    >>> option = browser.options.create(made.id).option
    >>> browser.options.authorize(made.id, option.id, action_id=option.action_id).operation.status
    'authorized'
    """

    create: Final = bound(lambda p: p.vault_options, options.VaultOptions.create)
    list: Final = bound(lambda p: p.vault_options, options.VaultOptions.list)
    read: Final = bound(lambda p: p.vault_options, options.VaultOptions.get)
    authorize: Final = bound(lambda p: p.funding, funding.Funding.authorize)
    refresh: Final = bound(lambda p: p.vault_options, options.VaultOptions.refresh)


class PublicPayments(Resource):
    """A Payment as its payer sees it, and Payments that a shop's visitors create.

    >>> visitor.public_payments.read(payment.id).payment.status
    'awaiting_payment'
    """

    create: Final = bound(lambda p: p.public_payments, public.PublicPayments.create)
    read: Final = bound(lambda p: p.checkout, checkout.Checkout.get_payment)
    read_state: Final = bound(lambda p: p.checkout, checkout.Checkout.get_state)
    list_methods: Final = bound(
        lambda p: p.public_options, public_options.PublicOptions.list_methods
    )


class PublicOptions(Resource):
    """The ways to pay a Payment without an account, and the payer's choice among them.

    >>> option = visitor.public_options.create(payment.id, method="direct").option
    >>> visitor.public_options.select(payment.id, option.id).option.selection_status
    'selected'
    """

    create: Final = bound(lambda p: p.public_options, public_options.PublicOptions.create)
    read: Final = bound(lambda p: p.public_options, public_options.PublicOptions.get)
    select: Final = bound(lambda p: p.public_options, public_options.PublicOptions.select)
    refresh: Final = bound(lambda p: p.public_options, public_options.PublicOptions.refresh)
    submit_transaction: Final = bound(
        lambda p: p.public_options, public_options.PublicOptions.submit
    )


class Sessions(Resource):
    """Payment sessions, and the one dispute that each may have.

    >>> shop.sessions.flag_dispute(paid.session_id, reason="not delivered").dispute.status
    'flagged'
    >>> shop.sessions.resolve_dispute(paid.session_id, resolution="won").dispute.status
    'resolved'
    """

    read: Final = bound(lambda p: p.disputes, disputes.Disputes.get_session)
    flag_dispute: Final = bound(lambda p: p.disputes, disputes.Disputes.flag)
    resolve_dispute: Final = bound(lambda p: p.disputes, disputes.Disputes.resolve)


class Webhooks(Resource):
    """Webhook endpoints and their deliveries.

    >>> endpoint, signing_secret = shop.webhooks.create(url="https://192.0.43.8/events")
    >>> shop.webhooks.change(endpoint.id, EndpointChanges(status="archived")).status
    'archived'
    """

    create: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.create)
    list: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.list)
    read: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.get)
    change: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.update)
    rotate_secret: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.rotate_secret)
    test: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.send_test)
    recover: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.recover)
    list_health: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.list_health)
    read_health: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.get_health)
    list_deliveries: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.list_deliveries)
    read_delivery: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.get_delivery)
    retry_delivery: Final = bound(lambda p: p.webhooks, webhooks.WebhookEndpoints.retry)


class Events(Resource):
    """The events of the environment, and the repeated sending of events.

    >>> [event] = shop.events.list(name="payment.succeeded").records
    >>> shop.events.read(event.id) == event
    True
    """

    list: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.list)
    read: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.get)
    poll: Final = bound(lambda p: p.event_feed, feed.EventFeed.poll)
    find_end: Final = bound(lambda p: p.event_feed, feed.EventFeed.find_end)
    read_with_deliveries: Final = bound(
        lambda p: p.webhook_events, replay.WebhookEvents.get_with_deliveries
    )
    list_of_payment: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.list_of_payment)
    resend: Final = bound(lambda p: p.webhook_events, replay.WebhookEvents.resend)


class Reports(Resource):
    """The books by periods of closed days in UTC: balances by day, movements, payouts.

    >>> shop.reports.list_transactions("2026-09-01", "2026-09-02")
    Page()
    """

    list_balances: Final = bound(lambda p: p.book_reports, reports.BookReports.list_balances)
    list_transactions: Final = bound(
        lambda p: p.book_reports, reports.BookReports.list_transactions
    )
    list_payouts: Final = bound(lambda p: p.book_reports, reports.BookReports.list_payouts)


class Requests(Resource):
    """Recent requests to the API, as far as they are recorded.

    >>> shop.requests.list(lambda request: request.status >= 400, limit=10)
    Page()
    """

    list: Final = bound(lambda p: p.request_log, request_log.RequestLog.list_page)
    read: Final = bound(lambda p: p.request_log, request_log.RequestLog.get)


class Audit(Resource):
    """The audit trail: who changed what, from where, and when. Reads leave no entry.

    >>> [entry] = shop.audit.list(object_id=payment.id).records
    >>> entry.operation, entry.actor.type
    ('payments.receive', 'program')
    """

    list: Final = bound(lambda p: p.audit_trail, audit_trail.AuditTrail.list)


class Sandbox(Resource):
    """What only a sandbox has: its clock and chains, a faucet, strangers' transfers, failures on
    order. Raises NotFound in production, or if the deployment has a second app.

    >>> made = shop.payments.receive(order).payment
    >>> sent = shop.sandbox.transfer(8453, "USDC", "25.00", to=made.escrow_address)
    >>> advanced = shop.sandbox.advance_clock(60)
    >>> shop.payments.read(made.id).payment.status
    'succeeded'
    """

    read: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.read)
    fund: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.fund)
    decide_kyc: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.decide_kyc)
    deposit_at_bank: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.deposit_at_bank)
    mine_blocks: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.mine_blocks)
    advance_clock: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.advance_clock)
    trigger_event: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.trigger_event)
    fail_dependency: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.fail_dependency)
    decide_order: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.decide_order)
    decide_payout: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.decide_payout)
    reorg_chain: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.reorg_chain)
    run: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.run)
    transfer: Final = bound(lambda p: p.sandbox(), sandbox.Sandbox.transfer)


class Legacy(Resource):
    """What only the legacy interface does: quotes, settlements, role modules, transactions.

    >>> asked = NewQuote(amount="5.00", user_id=eve.id, destination=ToAccount(account_id=bob.id))
    >>> quote = shop.legacy.create_quote(asked, idempotency_key="quote-1").quote
    >>> shop.legacy.read_quote(quote.id).payment.status
    'awaiting_payment'
    """

    create_quote: Final = bound(lambda p: p.quotes, quotes.Quotes.create)
    read_quote: Final = bound(lambda p: p.quotes, quotes.Quotes.get)
    is_transfer_done: Final = bound(lambda p: p.quotes, quotes.Quotes.is_transfer_done)
    settle: Final = bound(lambda p: p.settlements, settlements.Settlements.settle)
    deploy_role_module: Final = bound(lambda p: p.role_modules, role_modules.RoleModules.deploy)
    list_transactions: Final = bound(
        lambda p: p.legacy_transactions, legacy_transactions.LegacyTransactions.list
    )
    read_transaction: Final = bound(
        lambda p: p.legacy_transactions, legacy_transactions.LegacyTransactions.get
    )
    read_balance: Final = bound(lambda p: p.address_balances, address_balances.AddressBalances.read)
    read_vault_balance: Final = bound(
        lambda p: p.address_balances, address_balances.AddressBalances.read_vault
    )
    read_balances: Final = bound(
        lambda p: p.address_balances, address_balances.AddressBalances.read_all
    )


class ClientTokens(OpenResource):
    """The tokens of client sessions, which prove a browser's access.

    >>> token = server.client_sessions.create(external_user_id="eve").token
    >>> access = service.client_tokens.exchange(token, mode="sandbox").access_token
    >>> environment, session = service.client_tokens.authenticate(access, mode="sandbox")
    """

    exchange: Final = opened(lambda p: p.client_sessions, client_sessions.ClientSessions.exchange)
    authenticate: Final = opened(
        lambda p: p.client_sessions, client_sessions.ClientSessions.authenticate
    )
    find_exchangeable: Final = opened(
        lambda p: p.client_sessions, client_sessions.ClientSessions.find_exchangeable
    )


class Checkout(OpenResource):
    """What payers prove themselves with: a link's code, or a Payment's client secret.

    >>> code = shop.payments.build_url(payment).rpartition("/")[2]
    >>> service.checkout.exchange_link(code, mode="sandbox").payment_id == payment.id
    True
    """

    exchange_link: Final = opened(lambda p: p.checkout, checkout.Checkout.exchange)
    read_page: Final = opened(lambda p: p.checkout, checkout.Checkout.get_page)
    authenticate: Final = opened(lambda p: p.checkout, checkout.Checkout.authenticate)
    read_shop: Final = opened(lambda p: p.public_payments, public.PublicPayments.get_shop)


class Shown(Generic[Kind]):
    """A resource as an attribute of the class that binds its authority."""

    def __init__(self, kind: type[Kind]) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__

    def __get__(self, resources: Resources, owner: type) -> Kind:
        return self.kind(resources._parts, resources._authority)


class Resources(Resource):
    """Everything that one authority can do in its environment, a resource per attribute.

    >>> shop.payments
    <Payments of env_...>
    >>> endpoint = shop.on_event("ship", print, subscribed_events=("payment.succeeded",))
    """

    payment_settings: Final = Shown(PaymentSettings)
    keys: Final = Shown(Keys)
    client_sessions: Final = Shown(ClientSessions)
    accounts: Final = Shown(Accounts)
    wallets: Final = Shown(Wallets)
    verifications: Final = Shown(Verifications)
    screening: Final = Shown(Screening)
    search: Final = Shown(Search)
    inbox: Final = Shown(Inbox)
    bank_accounts: Final = Shown(BankAccounts)
    onramps: Final = Shown(Onramps)
    vaults: Final = Shown(Vaults)
    mandates: Final = Shown(Mandates)
    deposits: Final = Shown(Deposits)
    payments: Final = Shown(Payments)
    options: Final = Shown(Options)
    sessions: Final = Shown(Sessions)
    webhooks: Final = Shown(Webhooks)
    events: Final = Shown(Events)
    reports: Final = Shown(Reports)
    requests: Final = Shown(Requests)
    audit: Final = Shown(Audit)
    public_payments: Final = Shown(PublicPayments)
    public_options: Final = Shown(PublicOptions)
    sandbox: Final = Shown(Sandbox)
    legacy: Final = Shown(Legacy)

    @property
    def authority(self) -> Authority:
        """The authority with which every operation runs."""
        return self._authority

    @check_arguments
    def on_event(
        self,
        name: HandlerName,
        handle: Handle,
        *,
        subscribed_events: SubscribedEvents = (),
        filters: EventFilters = (),
    ) -> Endpoint:
        """Call a function with the environment's events: all events, unless some are named, and of
        those the ones that satisfy all filters. The workers of this process call it.

        It is a webhook endpoint whose attempts call `handle` with a `ReceivedEvent`: events come at
        least once and in any order, so keep their `id`. If `handle` raises, or does not return
        within `webhooks.attempt_s`, the event comes again by the schedule of webhooks, also if the
        process was killed. Events from now on are kept for `name`, also while no process runs; call
        this at every start, wherever workers run. `handle` is a plain function: a coroutine
        function is refused, and one that returns an awaitable has failed. Raises TypeError,
        ValidationFailed, WebhookLimitReached.
        """
        parts = self._parts
        endpoints = HandlerEndpoints(parts.ports, parts.webhooks, parts.event_handlers)
        return endpoints.register(
            self._authority, name, handle, subscribed_events=subscribed_events, filters=filters
        )
