"""The settings of a deployment, as classes: a TOML file has a table for each (contract §12).

A field is a setting; its annotation is the only rule for its value, and its metadata has its
description, which docs/reference/settings.md prints. `loader` reads them from a file and the
environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import attrs
import msgspec

from payments_core.credentials.secrets import Mode
from payments_core.networks import MAX_DECIMALS, MIN_DECIMALS

Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Wei = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=3_600)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
ChainNumber = Annotated[
    str, msgspec.Meta(pattern="[1-9][0-9]{0,15}", extra={"rule": "a chain's number"})
]


def setting(about: str, default: Any = attrs.NOTHING, *, secret: bool = False) -> Any:
    """A setting, its description, and its default. A secret one is excluded from repr."""
    return attrs.field(default=default, repr=not secret, metadata={"about": about})


def table(about: str, kind: Any) -> Any:
    """A field that is a table, which may be absent."""
    return attrs.field(factory=kind, metadata={"about": about})


@attrs.frozen(kw_only=True)
class KeysSettings:
    """The master key ring, which encrypts stored secrets. One of the two is required."""

    ring: Text | None = setting(
        "The keys as `name:base64`, the current key first.", None, secret=True
    )
    ring_file: Text | None = setting(
        "A file that contains the keys, and that only its owner can read; `payments admin key-ring"
        " new k1` makes the first key.",
        None,
    )
    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("ring_file", "ring"),)


@attrs.frozen(kw_only=True)
class StorageSettings:
    """The storage of all records."""

    url: Text = setting(
        "`postgresql://…` for many machines, `sqlite:////path/payments.db` for one.", secret=True
    )


@attrs.frozen(kw_only=True)
class LimiterSettings:
    """The storage of rate limit counters."""

    url: Text = setting(
        "`redis://…`, or `memory:` if only one process serves: each process counts separately.",
        secret=True,
    )


@attrs.frozen(kw_only=True)
class HttpSettings:
    """The listener of `payments serve`."""

    host: Text = setting("The address to listen on.", "127.0.0.1")
    port: Port = setting("The port to listen on; 0 picks a free one.", 8080)
    threads: Count = setting("How many requests a process handles at the same time, at most.", 8)
    processes: Annotated[int, msgspec.Meta(ge=1, le=64)] = setting(
        "How many processes serve the port; each has its own threads, connections and pools.", 1
    )
    trusted_proxies: tuple[Text, ...] = setting(
        "The proxies whose X-Forwarded-For is trusted, such as `10.0.0.0/8`; `unix` for those that"
        " call through a Unix socket of your own WSGI server.",
        (),
    )
    reuse_port: bool = setting("Share the port with other processes of this machine.", False)
    drain_s: Seconds = setting("How long a stopping process waits for running requests.", 20)


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The jobs of `payments worker`."""

    threads: Count = setting("How many jobs run at the same time, not counting webhooks.", 4)
    drain_s: Seconds = setting("How long a stopping process waits for running jobs.", 30)
    state_folder: Text | None = setting(
        "A folder on this machine with a file for each worker. A restarted worker finds its"
        " unfinished jobs by this file. Unless set, the folder is systemd's state directory, or a"
        " folder for temporary files.",
        None,
    )


@attrs.frozen(kw_only=True)
class WebhookSettings:
    """How webhooks are sent."""

    max_active_endpoints: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = setting(
        "How many active endpoints an environment may have.", 100
    )
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = setting(
        "How many times a delivery is attempted.", 10
    )
    attempt_s: Annotated[int, msgspec.Meta(ge=1, le=30)] = setting(
        "How long one attempt may take.", 10
    )
    refused_prefixes: tuple[Text, ...] = setting(
        "Networks that webhooks are never sent to, in addition to those always refused.", ()
    )
    local_allowed: bool = setting(
        "Allow http:// URLs and URLs of this machine; sandbox only.", False
    )
    transport: Literal["threads", "curl"] = setting(
        "How requests are sent; `curl` needs the extra `curl`.", "threads"
    )


@attrs.frozen(kw_only=True)
class ChainSettings:
    """A chain, by its number: `[chains.8453]`."""

    urls: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=20)] = setting(
        "Its nodes, such as `evm+https://…`; three of different operators are best.", secret=True
    )
    settings: Mapping[str, str] = setting(
        "Settings of the adapter; an EVM chain has `admin`, `agreement` and `generation`.",
        attrs.Factory(dict),
    )


@attrs.frozen(kw_only=True)
class TokenSettings:
    """A token on a network."""

    symbol: Text = setting("Its symbol, such as `USDC`.")
    address: Text = setting("The address of its contract.")
    decimals: Annotated[int, msgspec.Meta(ge=MIN_DECIMALS, le=MAX_DECIMALS)] = setting(
        "Its decimals."
    )


@attrs.frozen(kw_only=True)
class AcceptanceSettings:
    """A row of a network's acceptance policy."""

    up_to: Text | None = setting(
        "The largest amount of a Payment that the row is for, in whole tokens.", None
    )
    tag: Literal["latest", "safe", "finalized"] | None = setting(
        "The block of the chain that must be reached.", None
    )
    depth: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = setting(
        "How many blocks must be on top.", 0
    )


@attrs.frozen(kw_only=True)
class NativeCurrencySettings:
    """The currency in which a network's fees are paid."""

    name: Text = setting("Its name.")
    symbol: Text = setting("Its symbol.")
    decimals: Annotated[int, msgspec.Meta(ge=0, le=MAX_DECIMALS)] = setting("Its decimals.")


@attrs.frozen(kw_only=True)
class FeeSettings:
    """The bounds of a network's fees, in wei for one unit of gas."""

    min_priority: Wei = setting("The lowest tip that nodes accept.")
    max_initial_priority: Wei = setting("The highest tip of a first offer.")
    max_priority: Wei = setting("The highest tip of an increase.")
    fee_ceiling: Wei = setting("The highest fee.")
    unestimated_margin: Count = setting(
        "How many times the usual gas a transaction gets that no node estimates.", 2
    )


@attrs.frozen(kw_only=True)
class NetworkSettings:
    """A network of your own, or what differs for a shipped one: `[networks.77]`."""

    name: Text | None = setting("The name for people; required for a network of your own.", None)
    chain_type: Literal["evm", "solana", "aptos"] | None = setting(
        "The family of its addresses and signatures, `evm` unless set.", None
    )
    native_currency: NativeCurrencySettings | None = setting(
        "The currency of its fees as a table `{name, symbol, decimals}`, Ether unless set.", None
    )
    tokens: tuple[TokenSettings, ...] = setting(
        "Tokens in addition to the shipped ones, each as a table `{symbol, address, decimals}`.", ()
    )
    watch_list: tuple[TokenSettings, ...] = setting(
        "More tokens that are noticed, and that count for no Payment.", ()
    )
    acceptance: tuple[AcceptanceSettings, ...] = setting(
        "When a block counts, by the Payment's amount: tables `{up_to, tag, depth}`, the last one"
        " without `up_to`. It replaces the shipped policy.",
        (),
    )
    block_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] | None = setting(
        "About how many milliseconds there are between two blocks, for estimates.", None
    )
    finalized_s: Annotated[int, msgspec.Meta(ge=0, le=604_800)] | None = setting(
        "About how many seconds pass until a block is `finalized`, for estimates.", None
    )
    fees: FeeSettings | None = setting(
        "The bounds of its fees, in wei; an EVM chain is not served without them.", None
    )
    rpc_url: Text | None = setting(
        "A public node, which wallets are given; required for a network of your own.", None
    )
    explorer_url: Text | None = setting(
        "Its explorer, with the paths of EIP-3091 and an https:// URL, which pages link.", None
    )
    is_testnet: bool | None = setting("Whether production must not serve it.", None)


@attrs.frozen(kw_only=True)
class SignerSettings:
    """The signer of the operators' transactions."""

    url: Text | None = setting(
        "The URL of a key service, such as `aws-kms://REGION/PREFIX`, or `file:///path/key`.",
        None,
        secret=True,
    )
    former_urls: tuple[Text, ...] = setting(
        "Signers of earlier keys; they complete the transfers that these keys have signed.",
        (),
        secret=True,
    )
    key_file_allowed: bool = setting(
        "Allow a key file in production, although anyone who copies it controls the funds.", False
    )


@attrs.frozen(kw_only=True)
class KycSettings:
    """The provider that verifies accounts."""

    url: Text | None = setting(
        "The URL of a provider. Without it the sandbox simulates one, and production has none.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class BankSettings:
    """The bank that pays bank accounts."""

    url: Text | None = setting(
        "The URL of a bank. Without it the sandbox simulates one, and production has none.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class PricingSettings:
    """The prices for quotes."""

    url: Text | None = setting(
        "The URL of a price source: `chainlink:` reads feeds from the chains, `table:?USDC=1` has"
        " prices of yours. Without it the sandbox has a table, and production makes no quotes.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class RouterSettings:
    """The router that exchanges assets, also across chains."""

    url: Text | None = setting(
        "The URL of a router, such as `cctp:https://iris-api.circle.com`. Without it simulated"
        " chains have one, and real chains have quotes of one asset on one chain only.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class OnrampSettings:
    """The hosted on-ramp, where payers pay by card or bank."""

    url: Text | None = setting(
        "The URL of a provider. Without it the sandbox simulates one on simulated chains, and the"
        " method `hosted_onramp` is not offered elsewhere.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class ScreeningSettings:
    """The provider that screens whom transfers and wallet links concern."""

    url: Text | None = setting(
        "The URL of a provider. Without it the sandbox simulates one, and production screens"
        " nothing.",
        None,
        secret=True,
    )


@attrs.frozen(kw_only=True)
class ProvidersSettings:
    """Those outside who sign, verify people, hold bank accounts, price, exchange, sell, screen."""

    signer: SignerSettings = table("", SignerSettings)
    kyc: KycSettings = table("", KycSettings)
    bank: BankSettings = table("", BankSettings)
    pricing: PricingSettings = table("", PricingSettings)
    router: RouterSettings = table("", RouterSettings)
    onramp: OnrampSettings = table("", OnrampSettings)
    screening: ScreeningSettings = table("", ScreeningSettings)


@attrs.frozen(kw_only=True)
class WalletConnectSettings:
    """WalletConnect by a script of yours: the first three are set together, or none is."""

    script: Text | None = setting(
        "The file `dist/index.umd.js` of `@walletconnect/universal-provider`.", None
    )
    integrity: Text | None = setting("The hash of this file, such as `sha384-…`.", None)
    project_id: Text | None = setting("Your project's id at WalletConnect.", None)
    relay_url: Text = setting("The relay for payers' browsers.", "wss://relay.walletconnect.org")


@attrs.frozen(kw_only=True)
class ManagementSettings:
    """The listener for operators: /metrics, /healthz and /readyz."""

    host: Text = setting(
        "The address to listen on; payers and partners must not reach it.", "127.0.0.1"
    )
    port: Port | None = setting(
        "The port to listen on; without it there is no such listener.", None
    )


@attrs.frozen(kw_only=True)
class LogSettings:
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "The lowest level that is logged.", "info"
    )
    format: Literal["json", "text"] = setting("One JSON object per line, or plain text.", "json")


@attrs.frozen(kw_only=True)
class Configuration:
    """All settings of one process. Every process of a deployment has the same settings, except for
    `http` and `management` if processes share a machine."""

    mode: Mode = setting("Which environments it serves: `sandbox` or `production`.")
    public_url: Text = setting("The URL at which payers and partners reach the service.")
    docs_url: Annotated[str, msgspec.Meta(pattern="^https?://[^ ]+$", max_length=2_048)] | None = (
        setting(
            "The URL of your own documentation, which has a page for each error below"
            " `errors/`. Unless set, errors name the pages at `/docs` of `public_url`.",
            None,
        )
    )
    service_name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] = setting(
        "The name that wallets show when they sign a challenge.", "Payments Core"
    )
    idempotency_days: Annotated[int, msgspec.Meta(ge=1, le=365)] = setting(
        "How many days the response to an Idempotency-Key is kept.", 30
    )
    events_days: Annotated[int, msgspec.Meta(ge=31, le=3_650)] = setting(
        "How many days an event and its deliveries are kept after their last change.", 90
    )
    deployment_operators: tuple[Text, ...] = setting(
        "The log-ins whose dashboard also shows parked jobs, kept notices of providers, and senders"
        " low on gas (how-to/dashboard.md).",
        (),
    )
    audit_days: Annotated[int, msgspec.Meta(ge=30, le=3_650)] = setting(
        "How many days an entry of the audit trail is kept.", 365
    )
    simulated_chains: bool = setting(
        "Simulate all networks that have no nodes in `chains`; sandbox only. Those in `chains` must"
        " then be testnets.",
        False,
    )
    keys: KeysSettings = setting("")
    storage: StorageSettings = setting("")
    limiter: LimiterSettings = setting("")
    limits: Mapping[str, Annotated[int, msgspec.Meta(ge=1)]] = setting(
        "Limits that replace the defaults of rate policies, by rule (limits.md).",
        attrs.Factory(dict),
    )
    http: HttpSettings = table("", HttpSettings)
    worker: WorkerSettings = table("", WorkerSettings)
    webhooks: WebhookSettings = table("", WebhookSettings)
    chains: Mapping[ChainNumber, ChainSettings] = setting("", attrs.Factory(dict))
    networks: Mapping[ChainNumber, NetworkSettings] = setting("", attrs.Factory(dict))
    providers: ProvidersSettings = table("", ProvidersSettings)
    walletconnect: WalletConnectSettings = table("", WalletConnectSettings)
    management: ManagementSettings = table("", ManagementSettings)
    log: LogSettings = table("", LogSettings)
