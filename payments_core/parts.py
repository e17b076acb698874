"""The parts of a service, each made once, in the order in which they need one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from payments_core.accounts.address_balances import AddressBalances
from payments_core.accounts.bank_accounts.operations import BankAccounts
from payments_core.accounts.capabilities.operations import Capabilities
from payments_core.accounts.directory import AccountDirectory
from payments_core.accounts.operations import Accounts
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policies import VaultPolicies
from payments_core.accounts.vaults.provisioning import VaultProvisioning
from payments_core.accounts.vaults.yields import VaultYields
from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.wallets import Wallets
from payments_core.background_jobs import BackgroundJobs
from payments_core.books.comparison import BookComparison
from payments_core.books.reports import BookReports
from payments_core.chains.port import Chain
from payments_core.chains.scanner import Scanner
from payments_core.deposits.operations import Deposits
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.engine.shares import Places
from payments_core.errors import NotFound
from payments_core.inbox import Inbox
from payments_core.legacy.role_modules.operations import RoleModules
from payments_core.legacy.settlements.operations import Settlements
from payments_core.legacy.transactions.operations import LegacyTransactions
from payments_core.notices.operations import ProviderNotices
from payments_core.onramps.operations import OnrampAccounts
from payments_core.payment_settings.operations import PartnerPaymentSettings
from payments_core.payments.checkout.checkout import Checkout
from payments_core.payments.checkout.options import PublicOptions
from payments_core.payments.checkout.public import PublicPayments
from payments_core.payments.collects import Collects
from payments_core.payments.destinations import Destinations
from payments_core.payments.disputes.operations import Disputes
from payments_core.payments.links import Links
from payments_core.payments.mandates.operations import Mandates
from payments_core.payments.offers.operations import Offers
from payments_core.payments.offers.providers import OfferMakers, OnrampOffers, RouteOffers
from payments_core.payments.operations import Payments
from payments_core.payments.paying.authorization import Funding
from payments_core.payments.paying.vault_options import VaultOptions
from payments_core.payments.payouts.creation import PayoutCreation
from payments_core.payments.refunding.operations import Refunds
from payments_core.payments.refunding.reconciliation import Reconciliations
from payments_core.payments.sends import Sends
from payments_core.pricing.shown import ShownPrices
from payments_core.providers import Providers
from payments_core.quotes.operations import Quotes
from payments_core.sandbox.banks import FundingBanks
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.operations import Sandbox
from payments_core.screening.asking import Screener
from payments_core.screening.operations import ScreeningDecisions
from payments_core.search import Search
from payments_core.settings import Settings
from payments_core.tenants.audit_trail import AuditTrail
from payments_core.tenants.client_sessions import ClientSessions
from payments_core.tenants.keys import EnvironmentKeys
from payments_core.tenants.operations import Tenants
from payments_core.tenants.operator_sessions import OperatorSessions
from payments_core.tenants.operators import Operators
from payments_core.tenants.request_log import RequestLog
from payments_core.tenants.second_factors import SecondFactors
from payments_core.waiting import Waits
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.dispatch.attempt import AttemptRunner
from payments_core.webhooks.dispatch.replay import WebhookEvents
from payments_core.webhooks.feed import EventFeed
from payments_core.webhooks.handlers import EventHandlers
from payments_core.webhooks.operations import WebhookEndpoints
from payments_core.webhooks.transports.port import Transport


class Parts:
    """Everything that a service is made of.

    It is for serving and for tools that work on a whole deployment. Partners' programs need only
    the resources of `PaymentsService.environment`, whose operations check their arguments first;
    the parts hold one another, and check nothing.
    """

    def __init__(
        self,
        ports: Ports,
        settings: Settings,
        chains: Mapping[int, Chain],
        sandbox_chains: Mapping[int, SandboxChain],
        providers: Providers,
        funding_banks: FundingBanks,
        transport: Transport,
        resolver: Resolver,
        waits: Waits,
        *,
        refresh: Callable[[], None],
        catch_up: Callable[[], None],
    ) -> None:
        self.ports: Final = ports
        """The storage, its committer, the clock, the key ring."""
        self.settings: Final = settings
        self.chains: Final = chains
        """The served chains, by their number; any other number raises ChainUnavailable."""
        self.event_handlers: Final = EventHandlers()
        """The functions of this process that handle events."""
        self._sandbox_chains = sandbox_chains
        self._simulated_bank = providers.simulated_bank
        self._simulated_onramp = providers.simulated_onramp
        self._simulated_funding_bank = funding_banks.simulated
        banks = self._banks = providers.banks
        self._funding_banks = funding_banks.by_mode
        payouts = PayoutCreation(ports, banks)
        remote_calls = self._remote_calls = RemoteCalls(settings.max_remote_calls, waits)
        screener = Screener(ports, providers.bounded_screening, remote_calls)
        destinations = Destinations(ports, chains, screener)
        self.tenants: Final = Tenants(ports)
        """Partners, their apps and environments, and their keys."""
        self.keys: Final = EnvironmentKeys(ports)
        """The keys of an environment, as its own operator makes and revokes them."""
        self.operators: Final = Operators(ports)
        """The people who may log in to an environment's dashboard."""
        self.second_factors: Final = SecondFactors(ports, self.operators, settings.service_name)
        """The second factors of operators."""
        self.operator_sessions: Final = OperatorSessions(ports, self.operators, self.second_factors)
        """The log-ins of operators."""
        self.audit_trail: Final = AuditTrail(ports)
        """Who changed what."""
        self.request_log: Final = RequestLog(ports)
        """Recent requests to the API, as far as they are recorded."""
        self.accounts: Final = Accounts(ports, chains, screener)
        """A partner's users; each has a vault on every chain."""
        self.account_directory: Final = AccountDirectory(ports)
        """Accounts by username, payment address or wallet address."""
        self.address_balances: Final = AddressBalances(
            ports.networks, chains, remote_calls, providers.pricing
        )
        """Balances of any address, ours or not."""
        self.wallets: Final = Wallets(ports, chains, remote_calls, screener, settings.service_name)
        """The wallets that accounts have proven to hold, and the challenges to prove it."""
        self.pricing: Final = providers.pricing
        """The source of prices of each mode that has one."""
        self.shown_prices: Final = ShownPrices(providers.pricing, waits)
        """Recent prices, for pages that show about what an amount is worth."""
        self.routers: Final = providers.routers
        """The router of each mode that has one."""
        self.verifications: Final = Verifications(ports, providers.kyc, remote_calls)
        """The identity checks of accounts, by a KYC provider."""
        self.book_reports: Final = BookReports(ports)
        """The books of an environment by periods of closed days."""
        self.screening: Final = ScreeningDecisions(ports)
        """What screening holds or has stopped, for an operator to decide."""
        self.exports: Final = Places(settings.max_remote_calls, 1)
        """Lists that are being written as files: one of an environment at a time."""
        self.search: Final = Search(ports)
        """Records of an environment by what people have of them."""
        self.capabilities: Final = Capabilities(ports, banks, funding_banks.by_mode)
        """Which bank flows accounts may use, as the bank decides."""
        self.bank_accounts: Final = BankAccounts(ports, banks)
        """US bank accounts of accounts, as the bank reviews them."""
        self.onramp_accounts: Final = OnrampAccounts(ports, funding_banks.by_mode, destinations)
        """Account numbers at the bank whose incoming transfers are credited as stablecoins."""
        self.client_sessions: Final = ClientSessions(ports, self.accounts)
        """Tokens with which a browser acts for one account, for a limited time."""
        self.vaults: Final = Vaults(ports, chains, remote_calls)
        """Balances of vaults: as a chain reports them, less the reserved amounts."""
        self.vault_provisioning: Final = VaultProvisioning(ports, chains)
        """Vaults: an account has one on each chain."""
        self.vault_policies: Final = VaultPolicies(ports)
        """Policies of vaults: limits, chains, assets and destinations, in versions."""
        self.vault_yields: Final = VaultYields(ports)
        """The yield settings of vaults."""
        self.mandates: Final = Mandates(ports)
        """Standing approvals to collect from a vault."""
        self.deposits: Final = Deposits(
            ports,
            chains,
            self.scanner,
            remote_calls,
            destinations.find_own,
            screener,
        )
        """Deposit addresses of accounts, and the transfers that arrived there."""
        self.links: Final = _make_links(ports, settings)
        """Checkout links, which lead payers to a Payment."""
        self.payments: Final = Payments(ports, destinations, self.links)
        """Receive Payments; reads and ends Payments of any intent."""
        self.quotes: Final = Quotes(
            ports, self.payments, destinations, providers.pricing, providers.routers, remote_calls
        )
        """Quotes of transfers, and the Payments that carry them out."""
        self.payment_settings: Final = PartnerPaymentSettings(ports)
        """A partner's settings for its Payments: fee, tolerance, limits, origins."""
        self.public_payments: Final = PublicPayments(ports, self.payments, destinations)
        """Payments that are created by a shop's visitors, who hold no credential."""
        self.sends: Final = Sends(ports, destinations, self.vaults, payouts)
        """Payments out of a vault."""
        self.collects: Final = Collects(ports, destinations, self.vaults)
        """Payments that are collected from a vault under a mandate."""
        self.refunds: Final = Refunds(ports, destinations, self.vaults)
        """Transfers of received funds back to their senders."""
        self.reconciliation: Final = Reconciliations(ports, destinations, self.vaults, payouts)
        """A partner's decisions on Payments that did not end as expected."""
        self.disputes: Final = Disputes(ports)
        """Payment sessions, and the one dispute that each may have."""
        self.vault_options: Final = VaultOptions(ports)
        """Ways to fund a Payment from the payer's vault."""
        makers = _make_offer_makers(ports, providers, destinations)
        offers = Offers(ports, makers, remote_calls, destinations.find_own, screener)
        self.public_options: Final = PublicOptions(ports, chains, offers)
        """Ways to fund a Payment without an account, and the payer's choice among them."""
        self.funding: Final = Funding(ports, self.vaults)
        """Transfers from a payer's vault to a Payment's escrow."""
        self.checkout: Final = Checkout(ports, self.links, self.public_options.describe_methods)
        """A payer's view of a Payment, by a link or by the Payment's client secret."""
        self.legacy_transactions: Final = LegacyTransactions(ports)
        """Payments, deposits and refunds as the legacy interface shows them."""
        self.role_modules: Final = RoleModules(ports, chains, remote_calls)
        """Role modules of vaults, which their owners authorize to act for them."""
        self.settlements: Final = Settlements(ports, chains, remote_calls, self.vaults)
        """Quotes that are paid from the vaults of their payers, by a signature."""
        self.webhooks: Final = WebhookEndpoints(ports, resolver, settings.webhooks, remote_calls)
        """Webhook endpoints and their deliveries."""
        self.webhook_events: Final = WebhookEvents(ports)
        self.event_feed: Final = EventFeed(ports)
        """The events of an environment, and the repeated sending of events."""
        self.provider_notices: Final = ProviderNotices(ports, providers.notice_readers)
        """Notices that providers send to their doors."""
        self.inbox: Final = Inbox(ports, chains, settings.deployment_operators)
        """What waits for a person in an environment."""
        self.background_jobs: Final = BackgroundJobs(
            ports,
            chains,
            self.capabilities,
            self.bank_accounts,
            providers.kyc,
            banks,
            providers.routers,
            makers,
            self.onramp_accounts,
            funding_banks.by_mode,
            screener,
            Vaults(ports, chains),
            AttemptRunner(ports, transport, resolver, settings.webhooks, self.event_handlers),
            refresh=refresh,
            catch_up=catch_up,
            events_retention_ms=settings.events_retention_ms,
            audit_retention_ms=settings.audit_retention_ms,
        )
        """The worker and the scanner of each mode."""

    def scanner(self, mode: str) -> Scanner:
        """The scanner that finds a mode's transfers on the chains."""
        return self.background_jobs.scanner(mode)

    def book_comparison(self, mode: str) -> BookComparison:
        """Compares the books of an environment of the mode with the chains and the bank."""
        return BookComparison(
            self.ports.storage,
            self.ports.clock,
            self.chains,
            self._banks.get(mode),
            self._funding_banks.get(mode),
        )

    def sandbox(self) -> Sandbox:
        """The controls of the sandbox. Raises NotFound if a chain has real money."""
        testnets, has_real_money = {}, False
        for number, chain in self.chains.items():
            network = self.ports.networks.get(number)
            if number not in self._sandbox_chains and network is not None:
                has_real_money |= not network.is_testnet
                testnets[number] = chain
        if has_real_money or not (testnets or self._sandbox_chains):
            raise NotFound("sandbox")
        return Sandbox(
            self.ports,
            self._sandbox_chains,
            self.background_jobs.worker("sandbox"),
            self.verifications,
            self._remote_calls,
            testnets=testnets,
            wake=self.scanner("sandbox").wake,
            bank=self._simulated_bank,
            onramp=self._simulated_onramp,
            funding_bank=self._simulated_funding_bank,
            wake_notices=self.background_jobs.notice_reader("sandbox").wake,
        )


def _make_offer_makers(
    ports: Ports, providers: Providers, destinations: Destinations
) -> OfferMakers:
    """The one table of the methods whose offers a provider makes."""
    clock, networks = ports.clock, ports.networks

    def is_ours(partition: str, address: str) -> bool:
        return bool(destinations.find_own(partition, [address]))

    return {
        "routing": RouteOffers(providers.routers, networks, clock, is_ours),
        "hosted_onramp": OnrampOffers(providers.onramps, networks, clock),
    }


def _make_links(ports: Ports, settings: Settings) -> Links:
    if settings.has_public_url:
        return Links(ports.key_ring, ports.entropy, settings.public_url)
    return Links(ports.key_ring, ports.entropy)
