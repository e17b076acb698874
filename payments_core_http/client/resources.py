# Printed from the OpenAPI document by docs/client: run `make client`.
"""The resources of the clients."""

from __future__ import annotations

from payments_core_http.client import operations
from payments_core_http.client.connection import Connection, Resource, listing, sending


class Partner(Resource):
    """Operations on partner."""

    read_config = sending(operations.partner_read_config)


class PaymentSettings(Resource):
    """Operations on payment settings."""

    read = sending(operations.payment_settings_read)
    replace = sending(operations.payment_settings_replace)


class ClientSessions(Resource):
    """Operations on client sessions."""

    create = sending(operations.client_sessions_create)
    revoke = sending(operations.client_sessions_revoke)


class Accounts(Resource):
    """Operations on accounts."""

    create = sending(operations.accounts_create)
    list = listing(operations.accounts_list)
    read = sending(operations.accounts_read)
    change = sending(operations.accounts_change)
    read_balances = sending(operations.accounts_read_balances)
    read_capabilities = sending(operations.accounts_read_capabilities)
    set_handle = sending(operations.accounts_set_handle)
    set_settlement = sending(operations.accounts_set_settlement)


class Wallets(Resource):
    """Operations on wallets."""

    add = sending(operations.wallets_add)
    list = listing(operations.wallets_list)
    create_challenge = sending(operations.wallets_create_challenge)
    remove = sending(operations.wallets_remove)


class Verifications(Resource):
    """Operations on verifications."""

    start = sending(operations.verifications_start)
    list = listing(operations.verifications_list)


class BankAccounts(Resource):
    """Operations on bank accounts."""

    activate = sending(operations.bank_accounts_activate)
    read_requirements = sending(operations.bank_accounts_read_requirements)
    add = sending(operations.bank_accounts_add)
    list = listing(operations.bank_accounts_list)


class Onramps(Resource):
    """Operations on onramps."""

    read_requirements = sending(operations.onramps_read_requirements)
    add = sending(operations.onramps_add)
    list = listing(operations.onramps_list)
    read_instructions = sending(operations.onramps_read_instructions)
    list_transactions = listing(operations.onramps_list_transactions)


class Vaults(Resource):
    """Operations on vaults."""

    list = listing(operations.vaults_list)
    provision = sending(operations.vaults_provision)
    read_policy = sending(operations.vaults_read_policy)
    replace_policy = sending(operations.vaults_replace_policy)
    read_yield_settings = sending(operations.vaults_read_yield_settings)
    replace_yield_settings = sending(operations.vaults_replace_yield_settings)


class Mandates(Resource):
    """Operations on mandates."""

    create = sending(operations.mandates_create)
    list = listing(operations.mandates_list)
    revoke = sending(operations.mandates_revoke)


class Deposits(Resource):
    """Operations on deposits."""

    issue_address = sending(operations.deposits_issue_address)
    list_addresses = listing(operations.deposits_list_addresses)
    check = sending(operations.deposits_check)
    list = listing(operations.deposits_list)


class Payments(Resource):
    """Operations on payments."""

    receive = sending(operations.payments_receive)
    send = sending(operations.payments_send)
    collect = sending(operations.payments_collect)
    list = listing(operations.payments_list)
    read = sending(operations.payments_read)
    cancel = sending(operations.payments_cancel)
    list_receipts = listing(operations.payments_list_receipts)
    reconcile = sending(operations.payments_reconcile)
    refund = sending(operations.payments_refund)
    list_refunds = listing(operations.payments_list_refunds)


class Sessions(Resource):
    """Operations on sessions."""

    read = sending(operations.sessions_read)
    flag_dispute = sending(operations.sessions_flag_dispute)
    resolve_dispute = sending(operations.sessions_resolve_dispute)


class Webhooks(Resource):
    """Operations on webhooks."""

    create = sending(operations.webhooks_create)
    list = listing(operations.webhooks_list)
    read = sending(operations.webhooks_read)
    change = sending(operations.webhooks_change)
    rotate_secret = sending(operations.webhooks_rotate_secret)
    test = sending(operations.webhooks_test)
    recover = sending(operations.webhooks_recover)
    list_deliveries = listing(operations.webhooks_list_deliveries)
    retry_delivery = sending(operations.webhooks_retry_delivery)


class Events(Resource):
    """Operations on events."""

    list = listing(operations.events_list)
    read = sending(operations.events_read)
    resend = sending(operations.events_resend)


class Requests(Resource):
    """Operations on requests."""

    list = listing(operations.requests_list)


class Sandbox(Resource):
    """Operations on sandbox."""

    read = sending(operations.sandbox_read)
    fund = sending(operations.sandbox_fund)
    decide_kyc = sending(operations.sandbox_decide_kyc)
    deposit_at_bank = sending(operations.sandbox_deposit_at_bank)
    mine_blocks = sending(operations.sandbox_mine_blocks)
    advance_clock = sending(operations.sandbox_advance_clock)
    trigger_event = sending(operations.sandbox_trigger_event)
    fail_dependency = sending(operations.sandbox_fail_dependency)
    decide_payout = sending(operations.sandbox_decide_payout)
    reorg_chain = sending(operations.sandbox_reorg_chain)
    run = sending(operations.sandbox_run)
    transfer = sending(operations.sandbox_transfer)


class Health(Resource):
    """Operations on health."""

    check = sending(operations.health_check)
    check_readiness = sending(operations.health_check_readiness)


class Legacy(Resource):
    """Operations on legacy."""

    register = sending(operations.legacy_register)
    get_user = sending(operations.legacy_get_user)
    get_user_by_address = sending(operations.legacy_get_user_by_address)
    add_address = sending(operations.legacy_add_address)
    check_username = sending(operations.legacy_check_username)
    update_username = sending(operations.legacy_update_username)
    update_preferences = sending(operations.legacy_update_preferences)
    resolve = sending(operations.legacy_resolve)
    is_kyc_done = sending(operations.legacy_is_kyc_done)
    generate = sending(operations.legacy_generate)
    get_deposit_address = sending(operations.legacy_get_deposit_address)
    quote = sending(operations.legacy_quote)
    read_transfer = sending(operations.legacy_read_transfer)
    verify_transfer = sending(operations.legacy_verify_transfer)
    settle = sending(operations.legacy_settle)
    supported_chains = sending(operations.legacy_supported_chains)
    get_balance = sending(operations.legacy_get_balance)
    get_balances = sending(operations.legacy_get_balances)
    get_transaction = sending(operations.legacy_get_transaction)
    get_transactions = sending(operations.legacy_get_transactions)
    deploy_role_module = sending(operations.legacy_deploy_role_module)


class OwnAccount(Resource):
    """Operations on own account."""

    read = sending(operations.own_account_read)


class OwnDeposits(Resource):
    """Operations on own deposits."""

    issue_address = sending(operations.own_deposits_issue_address)
    list_addresses = listing(operations.own_deposits_list_addresses)


class OwnPayments(Resource):
    """Operations on own payments."""

    create = sending(operations.own_payments_create)
    list = listing(operations.own_payments_list)
    read = sending(operations.own_payments_read)
    read_as_payer = sending(operations.own_payments_read_as_payer)


class OwnOptions(Resource):
    """Operations on own options."""

    create = sending(operations.own_options_create)
    list = listing(operations.own_options_list)
    read = sending(operations.own_options_read)
    authorize = sending(operations.own_options_authorize)
    refresh = sending(operations.own_options_refresh)


class PublicSessions(Resource):
    """Operations on public sessions."""

    exchange = sending(operations.public_sessions_exchange)


class PublicLinks(Resource):
    """Operations on public links."""

    exchange = sending(operations.public_links_exchange)


class PublicPayments(Resource):
    """Operations on public payments."""

    create = sending(operations.public_payments_create)
    read = sending(operations.public_payments_read)
    read_state = sending(operations.public_payments_read_state)
    list_methods = sending(operations.public_payments_list_methods)


class PublicOptions(Resource):
    """Operations on public options."""

    create = sending(operations.public_options_create)
    read = sending(operations.public_options_read)
    select = sending(operations.public_options_select)
    refresh = sending(operations.public_options_refresh)
    submit_transaction = sending(operations.public_options_submit_transaction)


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
    sessions: Sessions
    webhooks: Webhooks
    events: Events
    requests: Requests
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
        self.sessions = Sessions(connection)
        self.webhooks = Webhooks(connection)
        self.events = Events(connection)
        self.requests = Requests(connection)
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
    """What anybody, with a Payment's secret or link can do."""

    sessions: PublicSessions
    links: PublicLinks
    payments: PublicPayments
    options: PublicOptions

    def __init__(self, connection: Connection) -> None:
        self.sessions = PublicSessions(connection)
        self.links = PublicLinks(connection)
        self.payments = PublicPayments(connection)
        self.options = PublicOptions(connection)
