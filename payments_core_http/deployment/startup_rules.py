"""Configurations with which a deployment must not start, though each setting alone is valid.

A rule is a row: the setting's path, whether the configuration breaks it, and the message. The rows
of `WARNING_RULES` only appear in the log and in `payments doctor`; they refuse nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from functools import partial

import attrs

from payments_core.adapters import scheme_of
from payments_core.errors import FieldError
from payments_core.limiters.policies import RULES
from payments_core.public_url import PUBLIC_PATH_RULE, PUBLIC_URL_RULE, begins_as_a_route, find_host
from payments_core.webhooks.destinations import RefusedPrefix
from payments_core_http.client_address import UNIX, parse_networks
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import ConfigurationRefused

MIN_TRUSTED_PREFIX = {4: 16, 6: 32}
"""The minimum prefix length of a trusted network of public addresses: in a larger network clients
could spoof their address."""


@attrs.frozen
class StartupRule:
    """A condition that must not hold."""

    path: str
    is_broken: Callable[[Configuration], bool]
    message: str


def _only_in_production(
    condition: Callable[[Configuration], bool],
) -> Callable[[Configuration], bool]:
    return lambda one: one.mode == "production" and condition(one)


def is_loopback(host: str) -> bool:
    """Whether a listener's address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _url_is_wrong(one: Configuration) -> bool:
    return find_host(one.public_url) is None


def _url_is_local(one: Configuration) -> bool:
    host = find_host(one.public_url)
    return host is not None and (is_loopback(host) or host in ("0.0.0.0", "::"))


def _proxies_are_wrong(one: Configuration) -> bool:
    try:
        parse_networks(one.http.trusted_proxies)
    except ValueError:
        return True
    return False


def _proxies_are_public(one: Configuration) -> bool:
    if _proxies_are_wrong(one):
        return False
    return any(
        proxy != UNIX
        and not proxy.is_private
        and proxy.prefixlen < MIN_TRUSTED_PREFIX[proxy.version]
        for proxy in parse_networks(one.http.trusted_proxies)
    )


def _prefixes_are_wrong(one: Configuration) -> bool:
    try:
        for prefix in one.webhooks.refused_prefixes:
            RefusedPrefix.of(prefix, "")
    except ValueError:
        return True
    return False


def _lacks_part_of_walletconnect(name: str, one: Configuration) -> bool:
    given = one.walletconnect
    parts = (given.script, given.integrity, given.project_id)
    return any(part is not None for part in parts) and getattr(given, name) is None


def _signs_from_a_file(one: Configuration) -> bool:
    return any(
        scheme_of(url) == "file"
        for url in (one.providers.signer.url or "", *one.providers.signer.former_urls)
    )


def _node_urls(one: Configuration) -> Iterator[str]:
    return (url for chain in one.chains.values() for url in chain.urls)


def _is_public(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_unspecified or address.is_global


REFUSAL_RULES = (
    StartupRule("public_url", _url_is_wrong, PUBLIC_URL_RULE),
    StartupRule("public_url", lambda one: begins_as_a_route(one.public_url), PUBLIC_PATH_RULE),
    StartupRule(
        "public_url",
        _only_in_production(lambda one: not one.public_url.startswith("https://")),
        "must be https:// in production: payment links contain secrets",
    ),
    StartupRule(
        "public_url",
        _only_in_production(_url_is_local),
        "must be an address that payers can reach, not this machine",
    ),
    StartupRule(
        "storage.url",
        lambda one: scheme_of(one.storage.url) == "memory",
        "must not be memory: all data is lost when the process ends",
    ),
    StartupRule(
        "limits",
        lambda one: not RULES.keys() >= one.limits.keys(),
        "contains an unknown rule (docs/reference/limits.md lists the rules)",
    ),
    StartupRule(
        "simulated_chains",
        _only_in_production(lambda one: one.simulated_chains),
        "must be false in production: simulated funds have no value",
    ),
    StartupRule(
        "chains",
        lambda one: not one.chains and not one.simulated_chains,
        "is missing: give the nodes of each chain (or simulated_chains in a sandbox)",
    ),
    StartupRule(
        "providers.signer.url",
        lambda one: bool(one.chains) and one.providers.signer.url is None,
        "is missing: transfers out of escrows and vaults need a signer",
    ),
    StartupRule(
        "providers.signer.url",
        _only_in_production(
            lambda one: _signs_from_a_file(one) and not one.providers.signer.key_file_allowed
        ),
        "must be a key service in production, or set providers.signer.key_file_allowed = true",
    ),
    StartupRule(
        "webhooks.local_allowed",
        _only_in_production(lambda one: one.webhooks.local_allowed),
        "must be false in production: partners could send webhooks to your internal machines",
    ),
    StartupRule(
        "webhooks.refused_prefixes", _prefixes_are_wrong, "contains an entry that is not a network"
    ),
    StartupRule(
        "http.trusted_proxies",
        _proxies_are_wrong,
        "contains an entry that is neither a network nor `unix`",
    ),
    StartupRule(
        "http.trusted_proxies",
        _proxies_are_public,
        "trusts every proxy; clients can spoof their IP address",
    ),
    StartupRule(
        "http.trusted_proxies",
        _only_in_production(lambda one: not one.http.trusted_proxies),
        "is missing: give the proxy that terminates TLS (127.0.0.1 on the same machine);"
        " otherwise all clients share one rate limit",
    ),
    *(
        StartupRule(
            f"walletconnect.{name}",
            partial(_lacks_part_of_walletconnect, name),
            f"is missing: `script`, `integrity` and `project_id` go together{more}",
        )
        for name, more in (
            ("script", ""),
            ("integrity", "; nobody would notice another script"),
            ("project_id", ""),
        )
    ),
    StartupRule(
        "management.port",
        lambda one: (one.management.port or 0) + one.http.processes - 1 > 65_535,
        "is too high: each of http.processes has its own port, with consecutive numbers",
    ),
)

WARNING_RULES = (
    StartupRule(
        "limiter.url",
        lambda one: scheme_of(one.limiter.url) == "memory",
        "is memory: every process counts separately, so N processes allow N times the limit;"
        " give redis://… to have all of them count together",
    ),
    StartupRule(
        "providers.signer.url",
        _only_in_production(_signs_from_a_file),
        "is a key file: anyone who copies it controls the funds",
    ),
    StartupRule(
        "chains",
        _only_in_production(lambda one: any(len(chain.urls) < 3 for chain in one.chains.values())),
        "has a chain with fewer than three nodes: two must agree if one is down or wrong",
    ),
    StartupRule(
        "chains",
        _only_in_production(lambda one: any("+http://" in url for url in _node_urls(one))),
        "has a node at http://: anyone on the network path can change its answers",
    ),
    StartupRule(
        "management.host",
        lambda one: one.management.port is not None and _is_public(one.management.host),
        "accepts connections from any network that reaches this machine",
    ),
    StartupRule(
        "management.port",
        _only_in_production(lambda one: one.management.port is None),
        "is missing: metrics are not exported",
    ),
)


def require_startable(configuration: Configuration) -> None:
    """Raise ConfigurationRefused with all rules that the configuration breaks."""
    faults = tuple(_find_broken(REFUSAL_RULES, configuration))
    if faults:
        raise ConfigurationRefused(f"of mode {configuration.mode}", faults)


def find_warnings(configuration: Configuration) -> list[FieldError]:
    """The warnings for an operator; the deployment still starts."""
    return list(_find_broken(WARNING_RULES, configuration))


def _find_broken(
    rules: tuple[StartupRule, ...], configuration: Configuration
) -> Iterator[FieldError]:
    return (FieldError(rule.path, rule.message) for rule in rules if rule.is_broken(configuration))
