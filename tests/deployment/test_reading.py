"""The configuration from a file and from the environment."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from payments_core_http.deployment.loader import (
    ConfigurationRefused,
    list_settings,
    load_configuration,
)
from tests.deployment.settings import SANDBOX, configured, toml

FILE = {
    "mode": "sandbox",
    "public_url": "http://127.0.0.1:8080",
    "simulated_chains": True,
    "keys": {"ring_file": "ring"},
    "storage": {"url": "sqlite:///file.db"},
    "limiter": {"url": "memory:"},
    "http": {"port": 9000, "trusted_proxies": ["10.0.0.0/8", "::1"]},
    "limits": {"ip_minute": 7},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "payments.toml"
    path.write_text(toml(FILE))
    return path


def test_a_file_says_every_setting(file: Path) -> None:
    configuration = load_configuration(file, {})
    assert configuration.storage.url == "sqlite:///file.db"
    assert configuration.http.port == 9000
    assert configuration.http.trusted_proxies == ("10.0.0.0/8", "::1")
    assert configuration.limits == {"ip_minute": 7}
    assert configuration.worker.threads == 4


def test_the_environment_names_the_file(file: Path) -> None:
    assert load_configuration(None, {"PAYMENTS_CONFIG": str(file)}).http.port == 9000


def test_the_environment_wins_over_the_file(file: Path) -> None:
    environ = {
        "PAYMENTS_HTTP_PORT": "9001",
        "PAYMENTS_HTTP_TRUSTED_PROXIES": "192.0.2.1, 192.0.2.2",
        "PAYMENTS_LIMITS_GENERAL_MINUTE": "9",
        "PAYMENTS_SIMULATED_CHAINS": "false",
    }
    configuration = load_configuration(file, environ)
    assert configuration.http.port == 9001
    assert configuration.http.trusted_proxies == ("192.0.2.1", "192.0.2.2")
    assert configuration.limits == {"ip_minute": 7, "general_minute": 9}
    assert configuration.simulated_chains is False


def test_a_chain_may_come_from_the_environment_alone() -> None:
    configuration = configured(
        SANDBOX,
        SIMULATED_CHAINS=None,
        CHAINS_8453_URLS="evm+https://a.example, evm+https://b.example",
        CHAINS_8453_SETTINGS_ADMIN="0x1",
    )
    assert configuration.chains["8453"].urls == ("evm+https://a.example", "evm+https://b.example")
    assert configuration.chains["8453"].settings == {"admin": "0x1"}


def test_a_value_may_come_from_a_file_that_the_environment_names(tmp_path: Path) -> None:
    secret = tmp_path / "storage-url"
    secret.write_text("postgresql://me:secret@db/payments\n")
    configuration = configured(SANDBOX, STORAGE_URL=None, STORAGE_URL_FILE=str(secret))
    assert configuration.storage.url == "postgresql://me:secret@db/payments"


@pytest.mark.parametrize("order", [1, -1])
def test_a_setting_that_is_given_twice_is_refused_beside_the_other_faults(
    tmp_path: Path, order: int
) -> None:
    secret = tmp_path / "storage-url"
    secret.write_text("postgresql://me:secret@db/payments")
    twice = [("STORAGE_URL", "sqlite:///a.db"), ("STORAGE_URL_FILE", str(secret))][::order]
    environ = {name: text for name, text in SANDBOX.items() if "STORAGE" not in name}
    given = {f"PAYMENTS_{name}": text for name, text in twice}
    with pytest.raises(ConfigurationRefused) as refused:
        load_configuration(None, {**environ, **given})
    said = "is set twice: in PAYMENTS_STORAGE_URL and in PAYMENTS_STORAGE_URL_FILE"
    assert [(one.path, one.message) for one in refused.value.faults] == [("storage.url", said)]
    with pytest.raises(ConfigurationRefused) as refused:
        load_configuration(None, {**environ, **given, "PAYMENTS_MODE": "staging"})
    assert [one.path for one in refused.value.faults] == ["storage.url", "mode"]


def test_a_missing_file_that_the_environment_names_is_reported() -> None:
    with pytest.raises(
        ConfigurationRefused, match="PAYMENTS_STORAGE_URL_FILE points to a file that"
    ):
        configured(SANDBOX, STORAGE_URL_FILE="/nowhere/at/all")


def test_a_missing_setting_is_reported_with_its_variable_and_what_to_give() -> None:
    with pytest.raises(ConfigurationRefused) as refusal:
        load_configuration(None, {"PAYMENTS_MODE": "sandbox"})
    faults = {fault.path: fault.message for fault in refusal.value.faults}
    assert faults["keys.ring_file"] == (
        "is required, unless ring is given (PAYMENTS_KEYS_RING_FILE). A file that contains the"
        " keys, and that only its owner can read; `payments admin key-ring new k1` makes the first"
        " key."
    )
    assert "(PAYMENTS_STORAGE_URL). `postgresql://" in faults["storage.url"]


def test_all_faults_are_reported_at_once_by_their_paths() -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        load_configuration(None, {"PAYMENTS_MODE": "staging", "PAYMENTS_HTTP_PORT": "http"})
    paths = [fault.path for fault in refused.value.faults]
    assert paths == [
        "mode",
        "public_url",
        "keys.ring_file",
        "storage.url",
        "limiter.url",
        "http.port",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode = ", "is not TOML"),
        ("[http]\nthread = 8\n", "http.thread is not a known field"),
        ("http = 8\n", "http must be an object"),
        ("[chains.base]\nurls = ['evm+https://a']\n", "chains.base must be a chain's number"),
        ("[chains.8453]\nurls = []\n", "chains.8453.urls must have 1 to 20 items"),
        ("[keys]\nring = 'a'\nring_file = 'b'\n", "keys.ring cannot be given together with"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported_by_its_path(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "payments.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigurationRefused) as refused:
        load_configuration(path, {})
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefused, match="cannot be read: No such file"):
        load_configuration(tmp_path / "payments.toml", {})
    (tmp_path / "latin.toml").write_bytes(b"mode = '\xff'")
    with pytest.raises(ConfigurationRefused, match="is not UTF-8"):
        load_configuration(tmp_path / "latin.toml", {})


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ({"keys": {"ring": "k1:abc"}}, True),
        ({"storage": {"url": "postgresql://me:hidden@db/p"}}, True),
        ({"storage": {"url": "postgresql://db/p?password=hidden"}}, True),
        ({"chains.1": {"urls": ["evm+https://node.example/v3/hidden-hidden"]}}, True),
        ({"chains.1": {"urls": ["evm+https://node.example/rpc"]}}, False),
        ({"chains": {}}, False),
    ],
)
def test_a_file_with_secrets_is_for_few_eyes(
    tmp_path: Path, table: dict[str, dict[str, str]], refused: bool
) -> None:
    path = tmp_path / "payments.toml"
    path.write_text(toml({**FILE, **table}))
    path.chmod(0o640)
    load_configuration(path, {})
    path.chmod(0o644)
    if not refused:
        load_configuration(path, {})
        return
    with pytest.raises(ConfigurationRefused, match="all users can read it") as reported:
        load_configuration(path, {})
    assert "hidden" not in str(reported.value) and "k1:abc" not in str(reported.value)


def test_what_everybody_may_write_is_refused(file: Path, tmp_path: Path) -> None:
    file.chmod(0o646)
    with pytest.raises(ConfigurationRefused, match="can be written by all users"):
        load_configuration(file, {})
    secret = tmp_path / "storage-url"
    secret.write_text("sqlite:///payments.db")
    secret.chmod(0o666)
    with pytest.raises(ConfigurationRefused, match="all users can write"):
        configured(SANDBOX, STORAGE_URL_FILE=str(secret))


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5_000, "a = " + "9" * 5_000, "hidden.a = 1\nhidden.a = 2\n"]
)
def test_toml_that_cannot_be_read_is_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "payments.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigurationRefused, match="is not TOML") as refused:
        load_configuration(path, {})
    assert "hidden" not in str(refused.value)


def test_a_named_setting_may_come_from_a_file_too(tmp_path: Path) -> None:
    limit = tmp_path / "limit"
    limit.write_text("7")
    configuration = configured(SANDBOX, LIMITS_IP_MINUTE_FILE=str(limit))
    assert configuration.limits == {"ip_minute": 7}


def test_a_variable_that_is_not_a_setting_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        configured(SANDBOX, STORAGE_ULR="postgresql://me:secret@db/p", TEST_POSTGRES="x")
    assert [record.getMessage() for record in caplog.records] == [
        "unknown setting in environment variable PAYMENTS_STORAGE_ULR"
    ]


@pytest.mark.parametrize("service", ["HTTP", "MANAGEMENT", "LIMITS"])
def test_a_service_of_the_cluster_changes_no_setting(
    service: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes sets these variables in every container beside a service `payments-http`."""
    links = {
        "PORT": "tcp://10.96.0.7:80",
        "PORT_80_TCP": "tcp://10.96.0.7:80",
        "PORT_80_TCP_PORT": "80",
        "SERVICE_HOST": "10.96.0.7",
        "SERVICE_PORT": "80",
        "SERVICE_PORT_WEB": "80",
    }
    with caplog.at_level(logging.WARNING):
        beside = configured(SANDBOX, **{f"{service}_{name}": text for name, text in links.items()})
    assert beside == configured(SANDBOX)
    assert len(caplog.records) == len(links)


def test_a_port_beside_a_service_of_the_same_name_applies() -> None:
    beside = configured(SANDBOX, HTTP_PORT="9001", HTTP_SERVICE_HOST="10.96.0.7")
    assert beside.http.port == 9001


def test_the_newline_of_a_secret_is_not_a_part_of_it(file: Path) -> None:
    """As `echo secret | base64` gives it to a cluster."""
    environ = {
        "PAYMENTS_CONFIG": f"{file}\n",
        "PAYMENTS_STORAGE_URL": "postgresql://me:hidden@db/p\n",
        "PAYMENTS_HTTP_PORT": "9001\r\n",
    }
    configuration = load_configuration(None, environ)
    assert configuration.storage.url == "postgresql://me:hidden@db/p"
    assert configuration.http.port == 9001


def test_no_secret_is_in_a_repr() -> None:
    configuration = configured(
        SANDBOX,
        STORAGE_URL="postgresql://me:hidden@db/p",
        LIMITER_URL="redis://:hidden@cache",
        CHAINS_1_URLS="evm+https://node.example/hidden",
        PROVIDERS_SIGNER_URL="kms://hidden@keys",
        PROVIDERS_KYC_URL="kyc://hidden@faces",
    )
    assert "hidden" not in repr(configuration)
    assert SANDBOX["PAYMENTS_KEYS_RING"].partition(":")[2] not in repr(configuration)


def test_every_setting_has_a_variable_of_its_own_and_says_what_it_is_for() -> None:
    found = list(list_settings())
    assert len({one.variable for one in found}) == len(found)
    assert all(one.about.endswith(".") for one in found), [one.name for one in found]


@settings_of_hypothesis(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_any_text_in_the_environment_is_read_or_refused(text: str) -> None:
    for name in ("HTTP_PORT", "HTTP_REUSE_PORT", "HTTP_TRUSTED_PROXIES", "SERVICE_NAME"):
        with contextlib.suppress(ConfigurationRefused):
            configured(SANDBOX, **{name: text})
