"""The languages of the pages: catalogs, plural forms, numbers and times by locale.

A catalog is a `.po` file under `locale/`, read when its language is first requested, so that nobody
has to compile one. Texts that a catalog lacks are shown in English, the language of the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO

import attrs
from babel import Locale
from babel.dates import format_date, format_time, get_datetime_format
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, get_currency_precision

from payments_core.clock import Instant
from payments_core.money import format_amount
from payments_core.networks import Asset

DEFAULT_LANGUAGE = "en"
LANGUAGES: Mapping[str, str] = {
    "en": "English",
    "es": "Español",
    "ar": "العربية",
    "fr": "Français",
    "de": "Deutsch",
    "pt": "Português",
    "zh": "简体中文",
}
"""The languages that a reader can choose, each by its own name."""

_VARIANTS: Mapping[str, str] = {"pt": "pt_BR", "zh": "zh_Hans"}
"""Which form of a language its texts have, where there are several."""

_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
_MAX_CHARACTERS = 200


@attrs.frozen(eq=False)
class Language:
    """One language: its texts, and how it writes numbers and times."""

    tag: str
    locale: Locale
    texts: NullTranslations = attrs.field(repr=False)

    @property
    def html_tag(self) -> str:
        """The language of the texts as in HTML (BCP 47), such as `pt-BR`."""
        return str(self.locale).replace("_", "-")

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`, as in HTML."""
        return self.locale.text_direction

    def translate(self, text: str, **values: object) -> str:
        """The text in this language with its `%(name)s` filled in.

        Each value is isolated from the direction of the text around it: a reference in Latin
        letters must not change the order of an Arabic sentence.
        """
        return _fill(self.texts.gettext(text), values)

    def translate_count(self, one: str, more: str, number: int, **values: object) -> str:
        """The text in the form that this language has for the number; English has two, Arabic six.

        `one` and `more` are the English forms. Values are filled in as by `translate`.
        """
        return _fill(self.texts.ngettext(one, more, number), values)

    def join(self, parts: Iterable[str]) -> str:
        """The parts of a list."""
        return self.translate(", ").join(parts)

    def format_amount(self, amount_atomic: int, asset: Asset) -> str:
        """An amount with its symbol on the same line, exact at any length.

        Babel's own function uses a decimal context, which rounds numbers with more than 28 digits.
        """
        return self.format_money(format_amount(amount_atomic, asset.decimals), asset.symbol)

    def format_money(self, amount: str, unit: str) -> str:
        """An amount, as plain decimal digits, with the symbol or the code of its unit."""
        symbols = self.locale.number_symbols["latn"]
        whole, point, fraction = amount.partition(".")
        grouped = f"{int(whole):,}".replace(",", symbols["group"])
        return f"{grouped}{symbols['decimal'] if point else ''}{fraction}\u00a0{unit}"

    def format_currency(self, value: Fraction, currency: str) -> str | None:
        """About so much of a currency (ISO 4217), rounded to the digits that it is usually written
        with, such as none for JPY; None if that is nothing."""
        digits = get_currency_precision(currency)
        rounded = round(value * 10**digits)
        if not rounded:
            return None
        return f"≈\u00a0{self.format_money(format_amount(rounded, digits), currency)}"

    def format_number(self, number: int) -> str:
        """A whole number."""
        return format_decimal(number, locale=self.locale)

    def format_instant(self, instant: Instant) -> str:
        """Date and time to the minute, in UTC. A part of a minute is left out: earlier is safe."""
        moment = datetime.fromtimestamp(instant // 1_000, UTC)
        date = format_date(moment, "medium", locale=self.locale)
        time = format_time(moment, "short", locale=self.locale)
        pattern = str(get_datetime_format("medium", locale=self.locale)).replace("'", "")
        return f"{pattern.format(time, date)} UTC"


def _fill(text: str, values: Mapping[str, object]) -> str:
    if not values:
        return text
    return text % {name: f"{_ISOLATE}{value}{_END_ISOLATE}" for name, value in values.items()}


@cache
def get_language(tag: str) -> Language:
    """The language of a tag in LANGUAGES."""
    if tag not in LANGUAGES:
        raise ValueError(f"no language {tag!r}")
    return Language(tag, get_locale(tag), _read_catalog(tag))


def get_locale(tag: str) -> Locale:
    """The locale of a tag in LANGUAGES."""
    return Locale.parse(_VARIANTS.get(tag, tag))


def choose_language(wanted: str | None, accept_language: str | None) -> Language:
    """The language that the reader chose, else the first that the browser prefers, else English.

    A region does not count: `pt-BR` is `pt`. Unknown languages of either are ignored.
    """
    preferred = _list_preferred((accept_language or "")[:_MAX_CHARACTERS])
    tags = (_get_primary(wanted or ""), *preferred)
    return get_language(next((tag for tag in tags if tag in LANGUAGES), DEFAULT_LANGUAGE))


def _get_primary(tag: str) -> str:
    """The language of a tag, without its script and region."""
    return tag.strip().partition("-")[0].lower()


def _list_preferred(accept_language: str) -> list[str]:
    """The primary tags of an `Accept-Language` (RFC 9110, 12.5.4), by preference."""
    weighted: list[tuple[Decimal, int, str]] = []
    for place, item in enumerate(accept_language.split(",")):
        name, _, parameter = item.strip().partition(";")
        weight = _parse_weight(parameter)
        if weight:
            weighted.append((-weight, place, _get_primary(name)))
    return [tag for _, _, tag in sorted(weighted)]


def _parse_weight(parameter: str) -> Decimal:
    text = parameter.strip().removeprefix("q=")
    is_weight = text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit()
    return Decimal(text) if is_weight else Decimal(0 if text else 1)


def _read_catalog(tag: str) -> NullTranslations:
    if tag == DEFAULT_LANGUAGE:
        return NullTranslations()
    with (files(__package__) / "locale" / f"{tag}.po").open("rb") as lines:
        catalog = read_po(lines, locale=get_locale(tag))
    compiled = BytesIO()
    write_mo(compiled, catalog)  # which leaves out fuzzy and empty ones
    compiled.seek(0)
    return GNUTranslations(compiled)
