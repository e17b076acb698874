# Printed from the OpenAPI document by docs/client: run `make client`.
"""The resources of the asynchronous clients."""

from __future__ import annotations

from typing import Final

from payments_core_http.client import operations
from payments_core_http.client.async_connection import (
    AsyncConnection,
    AsyncResource,
    listing,
    sending,
)


class AsyncPartner(AsyncResource):
    """Operations on partner."""

    read_config: Final = sending(operations.partner_read_config)


class AsyncPaymentSettings(AsyncResource):
    """Operations on payment settings."""

    read: Final = sending(operations.payment_settings_read)
    replace: Final = sending(operations.payment_settings_replace)


class AsyncClientSessions(AsyncResource):
    """Operations on client sessions."""

    create: Final = sending(operations.client_sessions_create)
    revoke: Final = sending(operations.client_sessions_revoke)


class AsyncAccounts(AsyncResource):
    """Operations on accounts."""

    create: Final = sending(operations.accounts_create)
    list: Final = listing(operations.accounts_list)
    read: Final = sending(operations.accounts_read)
    change: Final = sending(operations.accounts_change)
    read_balances: Final = sending(operations.accounts_read_balances)
    read_capabilities: Final = sending(operations.accounts_read_capabilities)
    set_handle: Final = sending(operations.accounts_set_handle)
    set_settlement: Final = sending(operations.accounts_set_settlement)


class AsyncWallets(AsyncResource):
    """Operations on wallets."""

    add: Final = sending(operations.wallets_add)
    list: Final = listing(operations.wallets_list)
    create_challenge: Final = sending(operations.wallets_create_challenge)
    remove: Final = sending(operations.wallets_remove)


class AsyncVerifications(AsyncResource):
    """Operations on verifications."""

    start: Final = sending(operations.verifications_start)
    list: Final = listing(operations.verifications_list)


class AsyncBankAccounts(AsyncResource):
    """Operations on bank accounts."""

    activate: Final = sending(operations.bank_accounts_activate)
    read_requirements: Final = sending(operations.bank_accounts_read_requirements)
    add: Final = sending(operations.bank_accounts_add)
    list: Final = listing(operations.bank_accounts_list)


class AsyncOnramps(AsyncResource):
    """Operations on onramps."""

    read_requirements: Final = sending(operations.onramps_read_requirements)
    add: Final = sending(operations.onramps_add)
    list: Final = listing(operations.onramps_list)
    read_instructions: Final = sending(operations.onramps_read_instructions)
    list_transactions: Final = listing(operations.onramps_list_transactions)


class AsyncVaults(AsyncResource):
    """Operations on vaults."""

    list: Final = listing(operations.vaults_list)
    provision: Final = sending(operations.vaults_provision)
    read_policy: Final = sending(operations.vaults_read_policy)
    replace_policy: Final = sending(operations.vaults_replace_policy)
    read_yield_settings: Final = sending(operations.vaults_read_yield_settings)
    replace_yield_settings: Final = sending(operations.vaults_replace_yield_settings)


class AsyncMandates(AsyncResource):
    """Operations on mandates."""

    create: Final = sending(operations.mandates_create)
    list: Final = listing(operations.mandates_list)
    revoke: Final = sending(operations.mandates_revoke)


class AsyncDeposits(AsyncResource):
    """Operations on deposits."""

    issue_address: Final = sending(operations.deposits_issue_address)
    list_addresses: Final = listing(operations.deposits_list_addresses)
    check: Final = sending(operations.deposits_check)
    send_back: Final = sending(operations.deposits_send_back)
    list: Final = listing(operations.deposits_list)


class AsyncPayments(AsyncResource):
    """Operations on payments."""

    receive: Final = sending(operations.payments_receive)
    send: Final = sending(operations.payments_send)
    collect: Final = sending(operations.payments_collect)
    list: Final = listing(operations.payments_list)
    read: Final = sending(operations.payments_read)
    cancel: Final = sending(operations.payments_cancel)
    list_receipts: Final = listing(operations.payments_list_receipts)
    reconcile: Final = sending(operations.payments_reconcile)
    refund: Final = sending(operations.payments_refund)
    list_refunds: Final = listing(operations.payments_list_refunds)


class AsyncReports(AsyncResource):
    """Operations on reports."""

    list_balances: Final = listing(operations.reports_list_balances)
    list_transactions: Final = listing(operations.reports_list_transactions)
    list_payouts: Final = listing(operations.reports_list_payouts)


class AsyncSessions(AsyncResource):
    """Operations on sessions."""

    read: Final = sending(operations.sessions_read)
    flag_dispute: Final = sending(operations.sessions_flag_dispute)
    resolve_dispute: Final = sending(operations.sessions_resolve_dispute)


class AsyncWebhooks(AsyncResource):
    """Operations on webhooks."""

    create: Final = sending(operations.webhooks_create)
    list: Final = listing(operations.webhooks_list)
    read: Final = sending(operations.webhooks_read)
    change: Final = sending(operations.webhooks_change)
    rotate_secret: Final = sending(operations.webhooks_rotate_secret)
    test: Final = sending(operations.webhooks_test)
    recover: Final = sending(operations.webhooks_recover)
    list_deliveries: Final = listing(operations.webhooks_list_deliveries)
    retry_delivery: Final = sending(operations.webhooks_retry_delivery)


class AsyncEvents(AsyncResource):
    """Operations on events."""

    list: Final = listing(operations.events_list)
    read: Final = sending(operations.events_read)
    resend: Final = sending(operations.events_resend)


class AsyncRequests(AsyncResource):
    """Operations on requests."""

    list: Final = listing(operations.requests_list)


class AsyncAudit(AsyncResource):
    """Operations on audit."""

    list: Final = listing(operations.audit_list)


class AsyncSandbox(AsyncResource):
    """Operations on sandbox."""

    read: Final = sending(operations.sandbox_read)
    fund: Final = sending(operations.sandbox_fund)
    decide_kyc: Final = sending(operations.sandbox_decide_kyc)
    deposit_at_bank: Final = sending(operations.sandbox_deposit_at_bank)
    mine_blocks: Final = sending(operations.sandbox_mine_blocks)
    advance_clock: Final = sending(operations.sandbox_advance_clock)
    trigger_event: Final = sending(operations.sandbox_trigger_event)
    fail_dependency: Final = sending(operations.sandbox_fail_dependency)
    decide_payout: Final = sending(operations.sandbox_decide_payout)
    decide_order: Final = sending(operations.sandbox_decide_order)
    reorg_chain: Final = sending(operations.sandbox_reorg_chain)
    run: Final = sending(operations.sandbox_run)
    transfer: Final = sending(operations.sandbox_transfer)


class AsyncHealth(AsyncResource):
    """Operations on health."""

    check: Final = sending(operations.health_check)
    check_readiness: Final = sending(operations.health_check_readiness)


class AsyncLegacy(AsyncResource):
    """Operations on legacy."""

    register: Final = sending(operations.legacy_register)
    get_user: Final = sending(operations.legacy_get_user)
    get_user_by_address: Final = sending(operations.legacy_get_user_by_address)
    add_address: Final = sending(operations.legacy_add_address)
    check_username: Final = sending(operations.legacy_check_username)
    update_username: Final = sending(operations.legacy_update_username)
    update_preferences: Final = sending(operations.legacy_update_preferences)
    resolve: Final = sending(operations.legacy_resolve)
    is_kyc_done: Final = sending(operations.legacy_is_kyc_done)
    generate: Final = sending(operations.legacy_generate)
    get_deposit_address: Final = sending(operations.legacy_get_deposit_address)
    quote: Final = sending(operations.legacy_quote)
    read_transfer: Final = sending(operations.legacy_read_transfer)
    verify_transfer: Final = sending(operations.legacy_verify_transfer)
    settle: Final = sending(operations.legacy_settle)
    supported_chains: Final = sending(operations.legacy_supported_chains)
    get_balance: Final = sending(operations.legacy_get_balance)
    get_balances: Final = sending(operations.legacy_get_balances)
    get_transaction: Final = sending(operations.legacy_get_transaction)
    get_transactions: Final = sending(operations.legacy_get_transactions)
    deploy_role_module: Final = sending(operations.legacy_deploy_role_module)


class AsyncOwnAccount(AsyncResource):
    """Operations on own account."""

    read: Final = sending(operations.own_account_read)


class AsyncOwnDeposits(AsyncResource):
    """Operations on own deposits."""

    issue_address: Final = sending(operations.own_deposits_issue_address)
    list_addresses: Final = listing(operations.own_deposits_list_addresses)


class AsyncOwnPayments(AsyncResource):
    """Operations on own payments."""

    create: Final = sending(operations.own_payments_create)
    list: Final = listing(operations.own_payments_list)
    read: Final = sending(operations.own_payments_read)
    read_as_payer: Final = sending(operations.own_payments_read_as_payer)


class AsyncOwnOptions(AsyncResource):
    """Operations on own options."""

    create: Final = sending(operations.own_options_create)
    list: Final = listing(operations.own_options_list)
    read: Final = sending(operations.own_options_read)
    authorize: Final = sending(operations.own_options_authorize)
    refresh: Final = sending(operations.own_options_refresh)


class AsyncPublicSessions(AsyncResource):
    """Operations on public sessions."""

    exchange: Final = sending(operations.public_sessions_exchange)


class AsyncPublicLinks(AsyncResource):
    """Operations on public links."""

    exchange: Final = sending(operations.public_links_exchange)


class AsyncPublicPayments(AsyncResource):
    """Operations on public payments."""

    create: Final = sending(operations.public_payments_create)
    read: Final = sending(operations.public_payments_read)
    read_state: Final = sending(operations.public_payments_read_state)
    list_methods: Final = sending(operations.public_payments_list_methods)


class AsyncPublicOptions(AsyncResource):
    """Operations on public options."""

    create: Final = sending(operations.public_options_create)
    read: Final = sending(operations.public_options_read)
    select: Final = sending(operations.public_options_select)
    refresh: Final = sending(operations.public_options_refresh)
    submit_transaction: Final = sending(operations.public_options_submit_transaction)


class AsyncPartnerResources:
    """What a partner's backend can do."""

    partner: AsyncPartner
    payment_settings: AsyncPaymentSettings
    client_sessions: AsyncClientSessions
    accounts: AsyncAccounts
    wallets: AsyncWallets
    verifications: AsyncVerifications
    bank_accounts: AsyncBankAccounts
    onramps: AsyncOnramps
    vaults: AsyncVaults
    mandates: AsyncMandates
    deposits: AsyncDeposits
    payments: AsyncPayments
    reports: AsyncReports
    sessions: AsyncSessions
    webhooks: AsyncWebhooks
    events: AsyncEvents
    requests: AsyncRequests
    audit: AsyncAudit
    sandbox: AsyncSandbox
    health: AsyncHealth
    legacy: AsyncLegacy

    def __init__(self, connection: AsyncConnection) -> None:
        self.partner = AsyncPartner(connection)
        self.payment_settings = AsyncPaymentSettings(connection)
        self.client_sessions = AsyncClientSessions(connection)
        self.accounts = AsyncAccounts(connection)
        self.wallets = AsyncWallets(connection)
        self.verifications = AsyncVerifications(connection)
        self.bank_accounts = AsyncBankAccounts(connection)
        self.onramps = AsyncOnramps(connection)
        self.vaults = AsyncVaults(connection)
        self.mandates = AsyncMandates(connection)
        self.deposits = AsyncDeposits(connection)
        self.payments = AsyncPayments(connection)
        self.reports = AsyncReports(connection)
        self.sessions = AsyncSessions(connection)
        self.webhooks = AsyncWebhooks(connection)
        self.events = AsyncEvents(connection)
        self.requests = AsyncRequests(connection)
        self.audit = AsyncAudit(connection)
        self.sandbox = AsyncSandbox(connection)
        self.health = AsyncHealth(connection)
        self.legacy = AsyncLegacy(connection)


class AsyncAccountResources:
    """What the holder of an access token can do."""

    account: AsyncOwnAccount
    deposits: AsyncOwnDeposits
    payments: AsyncOwnPayments
    options: AsyncOwnOptions

    def __init__(self, connection: AsyncConnection) -> None:
        self.account = AsyncOwnAccount(connection)
        self.deposits = AsyncOwnDeposits(connection)
        self.payments = AsyncOwnPayments(connection)
        self.options = AsyncOwnOptions(connection)


class AsyncPublicResources:
    """What anyone with a Payment's secret or link can do."""

    sessions: AsyncPublicSessions
    links: AsyncPublicLinks
    payments: AsyncPublicPayments
    options: AsyncPublicOptions

    def __init__(self, connection: AsyncConnection) -> None:
        self.sessions = AsyncPublicSessions(connection)
        self.links = AsyncPublicLinks(connection)
        self.payments = AsyncPublicPayments(connection)
        self.options = AsyncPublicOptions(connection)
