# Printed from the OpenAPI document by docs/client: run `make client`.
"""The resources of the clients."""

from __future__ import annotations

from typing import Final

from payments_core_http.client import operations
from payments_core_http.client.connection import Connection, Resource, listing, sending


class Partner(Resource):
    """Operations on partner."""

    read_config: Final = sending(operations.partner_read_config)


class PaymentSettings(Resource):
    """Operations on payment settings."""

    read: Final = sending(operations.payment_settings_read)
    replace: Final = sending(operations.payment_settings_replace)


class ClientSessions(Resource):
    """Operations on client sessions."""

    create: Final = sending(operations.client_sessions_create)
    revoke: Final = sending(operations.client_sessions_revoke)


class Accounts(Resource):
    """Operations on accounts."""

    create: Final = sending(operations.accounts_create)
    list: Final = listing(operations.accounts_list)
    read: Final = sending(operations.accounts_read)
    change: Final = sending(operations.accounts_change)
    read_balances: Final = sending(operations.accounts_read_balances)
    read_capabilities: Final = sending(operations.accounts_read_capabilities)
    set_handle: Final = sending(operations.accounts_set_handle)
    set_settlement: Final = sending(operations.accounts_set_settlement)


class Wallets(Resource):
    """Operations on wallets."""

    add: Final = sending(operations.wallets_add)
    list: Final = listing(operations.wallets_list)
    create_challenge: Final = sending(operations.wallets_create_challenge)
    remove: Final = sending(operations.wallets_remove)


class Verifications(Resource):
    """Operations on verifications."""

    start: Final = sending(operations.verifications_start)
    list: Final = listing(operations.verifications_list)


class BankAccounts(Resource):
    """Operations on bank accounts."""

    activate: Final = sending(operations.bank_accounts_activate)
    read_requirements: Final = sending(operations.bank_accounts_read_requirements)
    add: Final = sending(operations.bank_accounts_add)
    list: Final = listing(operations.bank_accounts_list)


class Onramps(Resource):
    """Operations on onramps."""

    read_requirements: Final = sending(operations.onramps_read_requirements)
    add: Final = sending(operations.onramps_add)
    list: Final = listing(operations.onramps_list)
    read_instructions: Final = sending(operations.onramps_read_instructions)
    list_transactions: Final = listing(operations.onramps_list_transactions)


class Vaults(Resource):
    """Operations on vaults."""

    list: Final = listing(operations.vaults_list)
    provision: Final = sending(operations.vaults_provision)
    read_policy: Final = sending(operations.vaults_read_policy)
    replace_policy: Final = sending(operations.vaults_replace_policy)
    read_yield_settings: Final = sending(operations.vaults_read_yield_settings)
    replace_yield_settings: Final = sending(operations.vaults_replace_yield_settings)


class Mandates(Resource):
    """Operations on mandates."""

    create: Final = sending(operations.mandates_create)
    list: Final = listing(operations.mandates_list)
    revoke: Final = sending(operations.mandates_revoke)


class Deposits(Resource):
    """Operations on deposits."""

    issue_address: Final = sending(operations.deposits_issue_address)
    list_addresses: Final = listing(operations.deposits_list_addresses)
    check: Final = sending(operations.deposits_check)
    send_back: Final = sending(operations.deposits_send_back)
    list: Final = listing(operations.deposits_list)


class Payments(Resource):
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


class Reports(Resource):
    """Operations on reports."""

    list_balances: Final = listing(operations.reports_list_balances)
    list_transactions: Final = listing(operations.reports_list_transactions)
    list_payouts: Final = listing(operations.reports_list_payouts)


class Sessions(Resource):
    """Operations on sessions."""

    read: Final = sending(operations.sessions_read)
    flag_dispute: Final = sending(operations.sessions_flag_dispute)
    resolve_dispute: Final = sending(operations.sessions_resolve_dispute)


class Webhooks(Resource):
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


class Events(Resource):
    """Operations on events."""

    list: Final = listing(operations.events_list)
    read: Final = sending(operations.events_read)
    resend: Final = sending(operations.events_resend)


class Requests(Resource):
    """Operations on requests."""

    list: Final = listing(operations.requests_list)


class Audit(Resource):
    """Operations on audit."""

    list: Final = listing(operations.audit_list)


class Sandbox(Resource):
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


class Health(Resource):
    """Operations on health."""

    check: Final = sending(operations.health_check)
    check_readiness: Final = sending(operations.health_check_readiness)


class Legacy(Resource):
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


class OwnAccount(Resource):
    """Operations on own account."""

    read: Final = sending(operations.own_account_read)


class OwnDeposits(Resource):
    """Operations on own deposits."""

    issue_address: Final = sending(operations.own_deposits_issue_address)
    list_addresses: Final = listing(operations.own_deposits_list_addresses)


class OwnPayments(Resource):
    """Operations on own payments."""

    create: Final = sending(operations.own_payments_create)
    list: Final = listing(operations.own_payments_list)
    read: Final = sending(operations.own_payments_read)
    read_as_payer: Final = sending(operations.own_payments_read_as_payer)


class OwnOptions(Resource):
    """Operations on own options."""

    create: Final = sending(operations.own_options_create)
    list: Final = listing(operations.own_options_list)
    read: Final = sending(operations.own_options_read)
    authorize: Final = sending(operations.own_options_authorize)
    refresh: Final = sending(operations.own_options_refresh)


class PublicSessions(Resource):
    """Operations on public sessions."""

    exchange: Final = sending(operations.public_sessions_exchange)


class PublicLinks(Resource):
    """Operations on public links."""

    exchange: Final = sending(operations.public_links_exchange)


class PublicPayments(Resource):
    """Operations on public payments."""

    create: Final = sending(operations.public_payments_create)
    read: Final = sending(operations.public_payments_read)
    read_state: Final = sending(operations.public_payments_read_state)
    list_methods: Final = sending(operations.public_payments_list_methods)


class PublicOptions(Resource):
    """Operations on public options."""

    create: Final = sending(operations.public_options_create)
    read: Final = sending(operations.public_options_read)
    select: Final = sending(operations.public_options_select)
    refresh: Final = sending(operations.public_options_refresh)
    submit_transaction: Final = sending(operations.public_options_submit_transaction)


class PartnerResources:
    """What a partner's backend can do."""

    partner: Partner
    payment_settings: PaymentSettings
    client_sessions: ClientSessions
    accounts: Accounts
    wallets: Wallets
    verifications: Verifications
    bank_accounts: BankAccounts
    onramps: Onramps
    vaults: Vaults
    mandates: Mandates
    deposits: Deposits
    payments: Payments
    reports: Reports
    sessions: Sessions
    webhooks: Webhooks
    events: Events
    requests: Requests
    audit: Audit
    sandbox: Sandbox
    health: Health
    legacy: Legacy

    def __init__(self, connection: Connection) -> None:
        self.partner = Partner(connection)
        self.payment_settings = PaymentSettings(connection)
        self.client_sessions = ClientSessions(connection)
        self.accounts = Accounts(connection)
        self.wallets = Wallets(connection)
        self.verifications = Verifications(connection)
        self.bank_accounts = BankAccounts(connection)
        self.onramps = Onramps(connection)
        self.vaults = Vaults(connection)
        self.mandates = Mandates(connection)
        self.deposits = Deposits(connection)
        self.payments = Payments(connection)
        self.reports = Reports(connection)
        self.sessions = Sessions(connection)
        self.webhooks = Webhooks(connection)
        self.events = Events(connection)
        self.requests = Requests(connection)
        self.audit = Audit(connection)
        self.sandbox = Sandbox(connection)
        self.health = Health(connection)
        self.legacy = Legacy(connection)


class AccountResources:
    """What the holder of an access token can do."""

    account: OwnAccount
    deposits: OwnDeposits
    payments: OwnPayments
    options: OwnOptions

    def __init__(self, connection: Connection) -> None:
        self.account = OwnAccount(connection)
        self.deposits = OwnDeposits(connection)
        self.payments = OwnPayments(connection)
        self.options = OwnOptions(connection)


class PublicResources:
    """What anyone with a Payment's secret or link can do."""

    sessions: PublicSessions
    links: PublicLinks
    payments: PublicPayments
    options: PublicOptions

    def __init__(self, connection: Connection) -> None:
        self.sessions = PublicSessions(connection)
        self.links = PublicLinks(connection)
        self.payments = PublicPayments(connection)
        self.options = PublicOptions(connection)
