"""A configuration's ports are opened by their URLs, and what cannot be is reported by its path."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.rotated_signer import find_signer
from payments_core.clock import HOUR, SystemClock
from payments_core.sandbox.clock import SandboxClock
from payments_core.settings import WalletConnect
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.loader import ConfigurationRefused
from tests.deployment.settings import ADMIN, PRODUCTION, SANDBOX, configured
from tests.shipped import CHAINS

KEY_RING = assembling.build_key_ring(configured(SANDBOX))


@pytest.mark.parametrize(
    ("open_it", "changes", "said"),
    [
        (
            assembling.build_storage,
            {"STORAGE_URL": "mongo://me:hidden@db"},
            "storage.url cannot be used",
        ),
        (
            assembling.build_limiter,
            {"LIMITER_URL": "etcd://me:hidden@cache"},
            "limiter.url cannot be",
        ),
        (
            assembling.build_key_ring,
            {"KEYS_RING": "k1:hidden"},
            "keys.ring cannot be used: key 1 is not",
        ),
        (
            assembling.build_key_ring,
            {"KEYS_RING": "k1:AAAA"},
            "keys.ring cannot be used: the key k1",
        ),
        (
            assembling.build_chains,
            {"PROVIDERS_SIGNER_URL": "kms://hidden"},
            "providers.signer.url cannot be used: no signer",
        ),
        (
            assembling.build_chains,
            {"PROVIDERS_SIGNER_URL": "file:///nowhere/at/all"},
            "providers.signer.url cannot be used: the key file /nowhere/at/all does not exist",
        ),
    ],
)
def test_what_cannot_be_opened_is_reported_without_its_secret(
    open_it: object, changes: dict[str, str], said: str
) -> None:
    real = {} if open_it is not assembling.build_chains else {"SIMULATED_CHAINS": "false"}
    with pytest.raises(ConfigurationRefused) as refused:
        open_it(configured(SANDBOX, **changes, **real))  # type: ignore[operator]
    assert said in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_a_provider_that_is_not_installed_is_reported() -> None:
    configuration = configured(SANDBOX, PROVIDERS_KYC_URL="faces://hidden")
    storage = assembling.build_storage(configuration)
    with pytest.raises(
        ConfigurationRefused, match=r"providers.kyc.url cannot be used: no KYC provider"
    ):
        assembling.build_service(configuration, storage, KEY_RING)
    storage.close()


def test_the_key_ring_comes_from_a_file_for_few_eyes(tmp_path: Path) -> None:
    ring = tmp_path / "key-ring"
    configuration = configured(SANDBOX, KEYS_RING=None, KEYS_RING_FILE=str(ring))
    with pytest.raises(
        ConfigurationRefused,
        match=r"keys.ring_file .*does not exist.*Put .*`payments admin key-ring",
    ):
        assembling.build_key_ring(configuration)
    ring.write_text(SANDBOX["PAYMENTS_KEYS_RING"] + "\n")
    ring.chmod(0o640)
    assert assembling.build_key_ring(configuration).current_id == "k1"
    ring.chmod(0o644)
    with pytest.raises(ConfigurationRefused, match="is open to all users"):
        assembling.build_key_ring(configuration)


def test_chains_open_by_their_numbers_and_no_node_is_asked(tmp_path: Path) -> None:
    LocalSigner.open(tmp_path / "key")
    chains = assembling.build_chains(
        configured(
            PRODUCTION,
            PROVIDERS_SIGNER_URL=f"file://{tmp_path}/key",
            PROVIDERS_SIGNER_KEY_FILE_ALLOWED="true",
        )
    )
    assert chains is not None
    assert list(chains) == [8453]
    assert chains[8453].chain_id == 8453


def test_former_signers_open_beside_the_present_one(tmp_path: Path) -> None:
    """What their keys have signed, they finish."""
    before, now = (LocalSigner.open(tmp_path / name) for name in ("before", "now"))
    settings = {
        "PROVIDERS_SIGNER_URL": f"file://{tmp_path}/now",
        "PROVIDERS_SIGNER_FORMER_URLS": f"file://{tmp_path}/before",
        "PROVIDERS_SIGNER_KEY_FILE_ALLOWED": "true",
    }
    chains = assembling.build_chains(configured(PRODUCTION, **settings))
    assert chains is not None
    signer = chains[8453]._signer  # type: ignore[attr-defined]
    assert signer.address("env_a") == now.address("env_a")
    assert find_signer(signer, "env_a", before.address("env_a")).address("env_b") == (
        before.address("env_b")
    )
    settings["PROVIDERS_SIGNER_FORMER_URLS"] = f"file://{tmp_path}/hidden"
    with pytest.raises(ConfigurationRefused, match=r"signer\.former_urls cannot be used"):
        assembling.build_chains(configured(PRODUCTION, **settings))


@pytest.mark.parametrize("admin", [None, "0x1", ADMIN.lower()[:-1] + "g"])
def test_a_chains_fault_is_reported_by_its_number(tmp_path: Path, admin: str | None) -> None:
    LocalSigner.open(tmp_path / "key")
    configuration = configured(
        PRODUCTION, PROVIDERS_SIGNER_URL=f"file://{tmp_path}/key", CHAINS_8453_SETTINGS_ADMIN=admin
    )
    with pytest.raises(ConfigurationRefused, match=r"chains\.8453 cannot be used: admin"):
        assembling.build_chains(configuration)


def test_simulated_chains_are_the_services_own() -> None:
    assert assembling.build_chains(configured(SANDBOX)) is None


def test_a_testnet_is_served_beside_simulated_chains(tmp_path: Path) -> None:
    LocalSigner.open(tmp_path / "key")
    configuration = configured(
        SANDBOX,
        STORAGE_URL=f"sqlite:///{tmp_path}/p.db",
        CHAINS_84532_URLS="evm+https://node.example",
        CHAINS_84532_SETTINGS_ADMIN=ADMIN,
        PROVIDERS_SIGNER_URL=f"file://{tmp_path}/key",
    )
    storage = assembling.build_storage(configuration)
    storage.migrate()
    service = assembling.build_service(configuration, storage, KEY_RING)
    kinds = {number: service.find_network_kind(number) for number in service.chains}
    assert kinds == {**dict.fromkeys(CHAINS, "simulated"), 84532: "testnet"}
    assembling.require_servable_mode(configuration, service)
    clock = SandboxClock(storage)
    clock.advance_to(clock.now() + HOUR)
    with pytest.raises(ConfigurationRefused, match=r"chains the clock of this sandbox was advanc"):
        assembling.require_servable_mode(configuration, service)
    service.close()


def test_the_settings_reach_the_service(tmp_path: Path) -> None:
    configuration = configured(
        SANDBOX,
        STORAGE_URL=f"sqlite:///{tmp_path}/p.db",
        PUBLIC_URL="http://127.0.0.1:8080/",
        IDEMPOTENCY_DAYS="2",
        WEBHOOKS_MAX_ATTEMPTS="3",
        WEBHOOKS_REFUSED_PREFIXES="203.0.113.0/24",
    )
    storage = assembling.build_storage(configuration)
    storage.migrate()
    service = assembling.build_service(configuration, storage, KEY_RING)
    assert service.settings.public_url == "http://127.0.0.1:8080"
    assert service.settings.idempotency_retention_ms == 2 * 86_400_000
    assert service.settings.webhooks.max_attempts == 3
    assert str(service.settings.webhooks.refused_prefixes[0].network) == "203.0.113.0/24"
    service.close()


class Unsafe(MemoryStorage):
    """A storage on a server that was set up badly, with a clock of its own."""

    def __init__(self, ahead_ms: int = 0) -> None:
        super().__init__()
        self._ahead_ms = ahead_ms

    def config_errors(self) -> list[str]:
        return ["synchronous_commit is off"]

    def config_warnings(self) -> list[str]:
        return ["fsync is off"]

    def server_time(self) -> int:
        return SystemClock().now() + self._ahead_ms


def test_a_database_that_loses_answers_is_refused_in_production_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ConfigurationRefused, match=r"storage\.url .* synchronous_commit is off"):
        assembling.require_safe_storage(configured(PRODUCTION), Unsafe())
    assembling.require_safe_storage(configured(SANDBOX), Unsafe())
    assert "unsafe database setting: synchronous_commit is off" in caplog.text
    assert "possibly unsafe database setting: fsync is off" in caplog.text
    assembling.require_safe_storage(configured(PRODUCTION), MemoryStorage())


@pytest.mark.parametrize("ahead_ms", [-31_000, 31_500])
def test_a_clock_far_from_the_storages_is_refused(ahead_ms: int) -> None:
    assembling.require_synchronized_clock(Unsafe())
    assembling.require_synchronized_clock(MemoryStorage())
    with pytest.raises(ConfigurationRefused, match="synchronize the clocks with NTP"):
        assembling.require_synchronized_clock(Unsafe(ahead_ms))


@pytest.mark.parametrize(
    ("threads", "waiting"), [("1", 1), ("2", 1), ("3", 2), ("8", 5), ("15", 8)]
)
def test_half_of_the_threads_wait_for_one_kind_of_service_and_one_more_for_others(
    threads: str, waiting: int
) -> None:
    configuration = configured(SANDBOX, HTTP_THREADS=threads)
    with closing(assembling.build_storage(configuration)) as storage:
        service = assembling.build_service(configuration, storage, KEY_RING)
        assert service.settings.max_remote_calls == waiting


class TestWalletConnect:
    """The script is read when the service is built, so that a wrong one is no payer's surprise."""

    def build(self, script: Path, integrity: str) -> WalletConnect | None:
        one = configured(
            SANDBOX,
            WALLETCONNECT_SCRIPT=str(script),
            WALLETCONNECT_INTEGRITY=integrity,
            WALLETCONNECT_PROJECT_ID="c0ffee",
        )
        return assembling.build_service(one, MemoryStorage(), KEY_RING).settings.walletconnect

    def test_the_file_with_this_hash_is_served(self, tmp_path: Path) -> None:
        (tmp_path / "wc.js").write_bytes(b"")
        built = self.build(
            tmp_path / "wc.js", "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        )
        assert built is not None
        assert (built.script, built.relay_url) == (b"", "wss://relay.walletconnect.org")

    def test_another_file_and_none_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "wc.js").write_bytes(b"changed")
        for script, said in (
            ("wc.js", "walletconnect cannot be used: script has another hash"),
            ("none.js", "walletconnect.script points to a file that cannot be read"),
        ):
            with pytest.raises(ConfigurationRefused, match=said):
                self.build(tmp_path / script, "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
