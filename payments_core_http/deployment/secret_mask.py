"""A text without the settings' secrets: for the messages of adapters, which may quote them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import attrs

from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import find_texts, list_settings, may_be_secret
from payments_core_http.redaction import REDACTED, redact, whole_word_pattern

MIN_SECRET_CHARACTERS = 4
"""A shorter password is part of too many words to be removed everywhere."""


@attrs.frozen
class SecretMask:
    """Removes the secrets of one configuration from texts, and all that looks like a credential."""

    _values: tuple[str, ...] = attrs.field(repr=False)

    @classmethod
    def of(cls, configuration: Configuration) -> SecretMask:
        """The secret settings, and the secret parts of URLs."""
        document = attrs.asdict(configuration)
        values = {
            value
            for setting in list_settings()
            if setting.is_secret
            for text in find_texts(document, setting.path)
            if may_be_secret(text)
            for value in _split_secrets(text)
            if len(value) >= MIN_SECRET_CHARACTERS
        }
        return cls(tuple(sorted(values, key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        """The text without them."""
        for value in self._values:
            text = re.sub(whole_word_pattern(value), REDACTED, text)
        return redact(text)


def _split_secrets(text: str) -> Iterator[str]:
    """The value itself, a node's URL without its adapter's name, and the password of a URL."""
    yield text
    scheme, mark, rest = text.partition("://")
    if mark:
        yield f"{scheme.rpartition('+')[2]}://{rest}"
    try:
        password = urlsplit(text).password or ""
    except ValueError:  # not a URL
        return
    yield password
    yield unquote(password)
