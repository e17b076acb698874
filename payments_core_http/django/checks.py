"""The system checks: `manage.py check`, and before every command. They open nothing.

`payments.E001` the settings cannot be used; `E002` an unknown setting; `E003` a secret that the
debug page would show; `E004` an unknown event; `W001` the project's URLs and the public URL differ;
with `--deploy` `W002` what a production deployment should not leave as it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.core import checks
from django.urls import NoReverseMatch, reverse
from django.views.debug import get_default_exception_reporter_filter

from payments_core_http.deployment.loader import (
    ConfigurationRefused,
    is_secret,
    is_setting,
    list_settings,
)
from payments_core_http.deployment.startup_rules import find_warnings
from payments_core_http.django import configuration as configuring

TAG = "payments"


def register_all() -> None:
    """Register the checks with Django; again changes nothing."""
    checks.register(check_settings, TAG)
    checks.register(check_secrets, TAG, checks.Tags.security)
    checks.register(check_events, TAG)
    checks.register(check_urls, TAG, checks.Tags.urls)
    checks.register(check_deployment, TAG, deploy=True)


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Whether a process can be started with the settings, and each of ours is known."""
    return [*_find_faults(), *_find_unknown()]


def check_secrets(**_: Any) -> list[checks.CheckMessage]:
    """Whether the debug page, and mails about errors, hide every secret among the settings."""
    shown = get_default_exception_reporter_filter().cleanse_setting
    found = []
    for name, value in configuring.list_given():
        values = value if isinstance(value, list | tuple) else [value]
        if shown(name, value) == value and any(is_secret(name, str(one)) for one in values):
            hint = f"Remove it, and set the environment variable {name}, or {name}_FILE."
            text = f"{name} contains a secret, which Django's debug page would show."
            found.append(checks.Error(text, hint=hint, id="payments.E003"))
    return found


def check_events(**_: Any) -> list[checks.CheckMessage]:
    """Whether there are such events as the handlers name."""
    from payments_core.engine.events import BY_NAME
    from payments_core_http.django.events import HANDLERS

    return [
        checks.Error(
            f"The handler {handler.name} names the event {name}, which there is not.",
            hint=_suggest(name, BY_NAME),
            obj=handler.function.__module__,
            id="payments.E004",
        )
        for handler in HANDLERS.values()
        for name in handler.subscribed_events
        if name not in BY_NAME
    ]


def check_urls(**_: Any) -> list[checks.CheckMessage]:
    """Whether the public URL is where the project has the pages, if it has them."""
    try:
        configuration = configuring.read_configuration()
        mounted_at = reverse("payments_core:root")
    except (ConfigurationRefused, NoReverseMatch):
        return []
    public = urlsplit(configuration.public_url).path.rstrip("/") + "/"
    if public.endswith(mounted_at):  # a prefix more may be the server's, or a proxy's
        return []
    text = f"The path of PAYMENTS_PUBLIC_URL is {public}, and the project's URLs have {mounted_at}."
    hint = "Links to payments begin with PAYMENTS_PUBLIC_URL: they must lead to the include."
    return [checks.Warning(text, hint=hint, id="payments.W001")]


def check_deployment(**_: Any) -> list[checks.CheckMessage]:
    """What `payments serve` would log as doubtful."""
    try:
        found = find_warnings(configuring.read_configuration())
    except ConfigurationRefused:
        return []
    return [checks.Warning(configuring.describe(one), id="payments.W002") for one in found]


def _find_faults() -> Iterator[checks.CheckMessage]:
    try:
        configuring.read_configuration()
    except ConfigurationRefused as refusal:
        for fault in refusal.faults:
            yield checks.Error(configuring.describe(fault), id="payments.E001")


def _find_unknown() -> Iterator[checks.CheckMessage]:
    known = [*configuring.OWN_SETTINGS, *(setting.variable for setting in list_settings())]
    for name, _ in configuring.list_given():
        if name not in configuring.OWN_SETTINGS and not is_setting(name):
            text = f"{name} is no setting."
            yield checks.Error(text, hint=_suggest(name, known), id="payments.E002")


def _suggest(name: str, known: Any) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}?" if close else None
