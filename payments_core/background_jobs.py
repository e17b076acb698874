"""The jobs of each mode: the handler of each kind, and the worker and the scanner that run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from payments_core.accounts.bank_accounts.operations import (
    LOOK_AT_BANK_ACCOUNT,
    REVIEW_BANK_ACCOUNT,
    BankAccounts,
)
from payments_core.accounts.capabilities.jobs import (
    LOOK_AT_CAPABILITIES,
    MAX_REVIEW_POLL_MS,
    REVIEW_CAPABILITIES,
)
from payments_core.accounts.capabilities.operations import Capabilities
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.verification.following import (
    LOOK_AT_VERIFICATION,
    LOOK_QUEUE,
    MAX_PAUSE_MS,
    VerificationLooks,
)
from payments_core.accounts.verification.port import KycProvider
from payments_core.banks.incoming import FundingBank
from payments_core.banks.notice_owner import BankNoticeOwner
from payments_core.banks.notice_reader import READ_NOTICES, NoticeKind, NoticeReader
from payments_core.banks.port import Bank
from payments_core.books.closing import DayClosing
from payments_core.chains.outbox.jobs import TransferJobs
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.reorg_recovery import RESEND, ReorgRecovery
from payments_core.chains.outbox.screening import ScreeningGate
from payments_core.chains.outbox.stray_transfers import StrayTransfers
from payments_core.chains.port import Chain
from payments_core.chains.scanner import SCAN, Scanner
from payments_core.clock import HOUR, MINUTE, Instant
from payments_core.deposits.discovery import ARRIVE, WATCH_DEPOSIT, DepositDiscovery
from payments_core.deposits.sending_back import DepositReturnOwner
from payments_core.deposits.sweep import SweepOwner
from payments_core.deposits.watch import NOTE_RETURN, DepositWatch
from payments_core.engine.decision import WorkerAuthority
from payments_core.engine.hourly_purge import PURGE, HourlyPurge
from payments_core.engine.jobs.execution import BatchHandler, Handler
from payments_core.engine.jobs.parking import MAX_BACK_OFF_MS, Queue
from payments_core.engine.jobs.postponed import LongestDelays, PostponedJobs
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.legacy.role_modules.steps import ModuleStepOwner
from payments_core.maintenance.audit_purge import AuditPurge
from payments_core.maintenance.parked_jobs import ParkedMarkPurge
from payments_core.maintenance.retention import EventPurge
from payments_core.maintenance.stored_bytes import StoredBytesCounter
from payments_core.misdirected.coin_reports import CoinReportOwner
from payments_core.notices.jobs import KEPT_MS, ROUTE_NOTICE, NoticeJobs
from payments_core.notices.owners import NoticeOwner
from payments_core.notices.record import ProviderKind
from payments_core.notices.screening import ScreeningNotices
from payments_core.onramps.credit import FOLLOW_TRANSFER, CreditOwner
from payments_core.onramps.following import TransferFollower
from payments_core.onramps.notices import RETURN_UNMATCHED, IncomingNotices, UnmatchedTransfers
from payments_core.onramps.operations import OPEN_ONRAMP_ACCOUNT, OnrampAccounts
from payments_core.onramps.review import LOOK_AGAIN_MS
from payments_core.payments.expiry import EXPIRE_PAYMENT, PaymentExpiry
from payments_core.payments.offers.jobs import FOLLOW_OFFER, OFFER_QUEUE, OfferJobs
from payments_core.payments.offers.lifecycle import MAX_PAUSE_MS as MAX_OFFER_PAUSE_MS
from payments_core.payments.offers.providers import OfferMakers
from payments_core.payments.paying.vault_transfer import FundingOwner
from payments_core.payments.payouts.jobs import FOLLOW_PAYOUT, LOOK_AT_PAYOUT, PayoutJobs
from payments_core.payments.payouts.lifecycle import MAX_LATE_LOOK_MS
from payments_core.payments.payouts.notices import PayoutNotices
from payments_core.payments.receipts.discovery import WATCH_TRANSACTION, ReceiptDiscovery
from payments_core.payments.receipts.purged_escrows import PurgedEscrows
from payments_core.payments.refunding.transfer import RefundOwner
from payments_core.payments.release import ReleaseOwner
from payments_core.payments.returns import ReturnJobs
from payments_core.payments.routing import FOLLOW_ROUTE
from payments_core.payments.sending_back import ReceiptReturnOwner
from payments_core.payments.tracking.jobs import ReceiptJobs
from payments_core.quotes.jobs import RouteJobs
from payments_core.record_types import RECORD_TYPES
from payments_core.routers.port import Router
from payments_core.screening.asking import Screener
from payments_core.tenants.modes import is_of_mode
from payments_core.webhooks.dispatch.attempt import AttemptRunner
from payments_core.webhooks.dispatch.dispatcher import Dispatcher
from payments_core.webhooks.dispatch.job_handlers import (
    DELIVERY_QUEUE,
    FAN_OUT_QUEUE,
    TASK_QUEUE,
    WebhookJobHandlers,
)
from payments_core.webhooks.dispatch.recovery import WebhookRecovery
from payments_core.webhooks.lifecycle import DELIVER, RECOVER
from payments_core.webhooks.retry_schedule import MAX_RETRY_DELAY_MS
from payments_core.webhooks.trimming import DeliveryTrim

TIMER_THREADS = 2
"""Half of a worker's threads. Jobs that ask banks are here: while one hangs, chains are read."""

QUEUES = (
    Queue("chain", lane_concurrency=1),
    Queue("timers", lane_concurrency=16, threads=TIMER_THREADS),
    LOOK_QUEUE,
    OFFER_QUEUE,
    FAN_OUT_QUEUE,
    DELIVERY_QUEUE,
    TASK_QUEUE,
)

_WAIT_FOR_BUSINESS = {EXPIRE_PAYMENT, FOLLOW_TRANSFER}
"""Kinds whose jobs wait for an expiry, or for the end of a hold."""


class BackgroundJobs:
    """Makes the one worker and the one scanner that a process has for a mode."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        capabilities: Capabilities,
        bank_accounts: BankAccounts,
        kyc: Mapping[str, KycProvider],
        banks: Mapping[str, Bank],
        routers: Mapping[str, Router],
        offer_makers: OfferMakers,
        onramp_accounts: OnrampAccounts,
        funding_banks: Mapping[str, FundingBank],
        screener: Screener,
        vaults: Vaults,
        attempts: AttemptRunner,
        refresh: Callable[[], None],
        catch_up: Callable[[], None],
        events_retention_ms: int,
        audit_retention_ms: int,
    ) -> None:
        """`refresh` is called before a worker reads the clock for a claim, `catch_up` at its start
        and when the clock has stepped back."""
        self._ports = ports
        self._chains = chains
        self._capabilities = capabilities
        self._bank_accounts = bank_accounts
        self._kyc = kyc
        self._banks = banks
        self._routers = routers
        self._offer_makers = offer_makers
        self._onramp_accounts = onramp_accounts
        self._funding_banks = funding_banks
        self._gate = ScreeningGate(ports, screener)
        self._vaults = vaults
        self._attempts = attempts
        self._refresh = refresh
        self._catch_up = catch_up
        self._events_retention_ms = events_retention_ms
        self._audit_retention_ms = audit_retention_ms
        self._outbox = Outbox(ports, chains, on_sent=self._wake_scanner)
        self._workers: dict[str, Worker] = {}
        self._scanners: dict[str, Scanner] = {}
        self._notice_readers: dict[str, NoticeReader] = {}

    def worker(self, mode: str) -> Worker:
        """The worker that does this process's share of a mode's jobs, webhooks too."""
        if mode not in self._workers:
            ports = self._ports
            self.scanner(mode).ensure_scheduled()
            self.notice_reader(mode).ensure_scheduled()
            worker = Worker(
                ports.storage,
                ports.guarded_clock,
                mode,
                self._handlers(mode),
                QUEUES,
                batch_handlers=self._batch_handlers(mode),
                refresh=self._refresh,
                telemetry=ports.telemetry,
                look_back=self._postponed_jobs(mode).look,
            )
            worker.attach(
                Dispatcher(
                    ports,
                    self._attempts,
                    self.webhook_delivery(mode),
                    worker.parking,
                    mode,
                    leases=worker.leases,
                    refresh=self._refresh,
                )
            )
            self._workers[mode] = worker
            ports.committer.on_commit(worker.wake)
        return self._workers[mode]

    def scanner(self, mode: str) -> Scanner:
        """The scanner that finds a mode's transfers on the chains."""
        if mode not in self._scanners:
            receipts = ReceiptDiscovery(self._ports, mode)
            purged = PurgedEscrows(self._ports, mode)
            deposits = DepositDiscovery(self._ports, self._chains, mode)
            strays = StrayTransfers(self._ports, self._chains, mode)
            self._scanners[mode] = Scanner(
                self._ports,
                self._chains,
                mode,
                filter_known=(
                    receipts.filter_known,
                    purged.filter_known,
                    deposits.filter_known,
                    strays.filter_known,
                ),
                on_transfers=(
                    receipts.on_transfers,
                    purged.on_transfers,
                    deposits.on_transfers,
                    strays.on_transfers,
                ),
                on_reorg=(
                    self._reorg_recovery(mode).on_reorg,
                    receipts.on_reorg,
                    deposits.on_reorg,
                ),
            )
        return self._scanners[mode]

    def notice_reader(self, mode: str) -> NoticeReader:
        """The reader of the notices of a mode's bank: the one table of their kinds."""
        if mode not in self._notice_readers:
            kinds: dict[str, NoticeKind] = {**self._incoming(mode), **self._payouts(mode)}
            self._notice_readers[mode] = NoticeReader(self._ports, mode, kinds)
        return self._notice_readers[mode]

    def _incoming(self, mode: str) -> dict[str, IncomingNotices]:
        bank = self._funding_banks.get(mode)
        return {} if bank is None else {"incoming": IncomingNotices(self._ports, bank, mode)}

    def _payouts(self, mode: str) -> dict[str, PayoutNotices]:
        bank = self._banks.get(mode)
        return {} if bank is None else {"payouts": PayoutNotices(self._ports, bank, mode)}

    def _bank_notices(self, mode: str) -> BankNoticeOwner:
        """Who follows what a bank's webhook names. Only the last one asks the bank for it."""
        return BankNoticeOwner(
            (
                *self._payouts(mode).values(),
                self._bank_accounts,
                self._capabilities,
                *self._incoming(mode).values(),
            ),
            self.notice_reader(mode).wake,
        )

    def webhook_delivery(self, mode: str) -> WebhookJobHandlers:
        """The dispatcher that makes and attempts the deliveries of a mode's events."""
        return WebhookJobHandlers(self._ports, self._attempts, mode)

    def require_working(self) -> None:
        """Return unless a worker of this process has too few threads left. Raises Unavailable."""
        if any(worker.hung.is_stuck for worker in self._workers.values()):
            raise Unavailable()

    def stop(self, within_s: float) -> None:
        """Stop the workers, for at most that long each."""
        for worker in self._workers.values():
            worker.stop(within_s)

    def _wake_scanner(self, authority: WorkerAuthority, chain_id: int) -> None:
        """Scan a chain that is seldom scanned as soon as we send a transaction to it, so
        that a reorg of its block will be noticed, and when a Payment is about to expire."""
        chain = self._chains.get(chain_id)
        if chain is not None and chain.max_scan_interval_ms > MINUTE:
            self.scanner(authority.mode).wake(chain_id)

    def _reorg_recovery(self, mode: str) -> ReorgRecovery:
        return ReorgRecovery(
            self._ports,
            self._outbox,
            mode,
            is_of_mode=lambda partition: is_of_mode(self._ports.storage, partition, mode),
        )

    def _handlers(self, mode: str) -> dict[str, Handler]:
        """The handler of each kind of job: the one table of them."""
        ports, chains = self._ports, self._chains
        payouts = PayoutJobs(ports, self._banks)
        verifications = VerificationLooks(ports, self._kyc)
        offers = OfferJobs(ports, self._offer_makers)
        owners: dict[ProviderKind, NoticeOwner] = {
            "kyc": verifications,
            "bank": self._bank_notices(mode),
            "onramp": offers,
            "screening": ScreeningNotices(ports),
        }
        return {
            ROUTE_NOTICE: NoticeJobs(ports, owners).route,
            LOOK_AT_VERIFICATION: verifications.look,
            FOLLOW_OFFER: offers.follow,
            SCAN: self.scanner(mode).scan,
            RESEND: self._reorg_recovery(mode).resend,
            ARRIVE: DepositDiscovery(ports, chains, mode).retry_lookup,
            WATCH_DEPOSIT: DepositWatch(ports, chains).watch,
            NOTE_RETURN: ReturnJobs(ports).note,
            PURGE: HourlyPurge(
                ports,
                (
                    DeliveryTrim(ports).run,
                    EventPurge(ports, self._events_retention_ms).run,
                    AuditPurge(ports, self._audit_retention_ms).run,
                    ParkedMarkPurge(ports).run,
                    StoredBytesCounter(ports, RECORD_TYPES).run,
                    DayClosing(ports).run,
                ),
            ).run,
            REVIEW_CAPABILITIES: self._capabilities.review,
            LOOK_AT_CAPABILITIES: self._capabilities.look,
            REVIEW_BANK_ACCOUNT: self._bank_accounts.review,
            LOOK_AT_BANK_ACCOUNT: self._bank_accounts.look,
            FOLLOW_PAYOUT: payouts.follow,
            LOOK_AT_PAYOUT: payouts.look,
            OPEN_ONRAMP_ACCOUNT: self._onramp_accounts.open,
            READ_NOTICES: self.notice_reader(mode).read,
            FOLLOW_TRANSFER: TransferFollower(ports, self._funding_banks, chains).follow,
            RETURN_UNMATCHED: UnmatchedTransfers(ports, self._funding_banks).send_back,
            EXPIRE_PAYMENT: PaymentExpiry(ports, chains, self._wake_scanner).run,
            FOLLOW_ROUTE: RouteJobs(ports, chains, self._routers).follow,
            RECOVER: WebhookRecovery(ports).recover,
            **self._transfer_jobs().handlers(),
            **self.webhook_delivery(mode).handlers(),
        }

    def _postponed_jobs(self, mode: str) -> PostponedJobs:

        def read_clock() -> Instant:
            self._refresh()
            return self._ports.guarded_clock.now()

        return PostponedJobs(
            self._ports.storage, mode, self._longest_delays(mode), read_clock, self._catch_up
        )

    def _longest_delays(self, mode: str) -> dict[str, LongestDelays]:
        """How late a job of each kind may be due; none for a kind that waits for an instant of
        business, which has no bound here."""
        scan_ms = max((chain.max_scan_interval_ms for chain in self._chains.values()), default=0)
        notices_ms = self.notice_reader(mode).max_pause_ms
        rows = {
            SCAN: LongestDelays(later_ms=max(scan_ms, MAX_BACK_OFF_MS)),
            READ_NOTICES: LongestDelays(later_ms=max(notices_ms, MAX_BACK_OFF_MS)),
            PURGE: LongestDelays(HOUR, HOUR),
            ROUTE_NOTICE: LongestDelays(later_ms=KEPT_MS),
            LOOK_AT_VERIFICATION: LongestDelays(later_ms=MAX_PAUSE_MS),
            FOLLOW_OFFER: LongestDelays(later_ms=MAX_OFFER_PAUSE_MS),
            REVIEW_CAPABILITIES: LongestDelays(later_ms=MAX_REVIEW_POLL_MS),
            REVIEW_BANK_ACCOUNT: LongestDelays(later_ms=MAX_REVIEW_POLL_MS),
            FOLLOW_PAYOUT: LongestDelays(later_ms=MAX_LATE_LOOK_MS),
            RETURN_UNMATCHED: LongestDelays(later_ms=LOOK_AGAIN_MS),
            DELIVER: LongestDelays(later_ms=MAX_RETRY_DELAY_MS),
        }
        kinds = {*self._handlers(mode), *self._batch_handlers(mode)} - _WAIT_FOR_BUSINESS
        return {kind: rows.get(kind, LongestDelays()) for kind in kinds}

    def _batch_handlers(self, mode: str) -> dict[str, BatchHandler]:
        """The handlers that run jobs of one kind and environment together, as one table."""
        receipts = ReceiptJobs(self._ports, self._chains, self._outbox, self._vaults)
        return {
            WATCH_TRANSACTION: receipts.watch,
            **self._transfer_jobs().batch_handlers(),
            **self.webhook_delivery(mode).batch_handlers(),
        }

    def _transfer_jobs(self) -> TransferJobs:
        chains, vaults = self._chains, self._vaults
        return TransferJobs(
            self._ports,
            self._outbox,
            self._gate,
            sent=[FundingOwner()],
            followed=[
                ReleaseOwner(vaults),
                RefundOwner(vaults),
                ReceiptReturnOwner(),
                CoinReportOwner(chains, self._ports.networks),
                SweepOwner(chains, self._ports.networks),
                DepositReturnOwner(self._ports, chains),
                ModuleStepOwner(chains, "deploying"),
                ModuleStepOwner(chains, "enabling"),
                CreditOwner(),
            ],
        )
