"""Files of feeds, and what is wrong in them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from payments_core.pricing.feeds import read_feeds

ADDRESS = "0x" + "11" * 20
ROW = {
    "symbol": '"USDC"', "address": f'"{ADDRESS}"', "heartbeat_s": "3600", "lowest_usd": '"0.9"',
    "highest_usd": '"1.1"', "source": '"ours"',
}  # fmt: skip


def write(path: Path, rows: str, number: str = "77", more: str = "") -> Path:
    file = path / "feeds.toml"
    file.write_text(f"[{number}]\n{more}\nfeeds = {rows}\n")
    return file


def row(**changes: str) -> str:
    fields = {**ROW, **changes}
    return "{" + ", ".join(f"{name} = {text}" for name, text in fields.items() if text) + "}"


def test_a_file_is_read(tmp_path: Path) -> None:
    more = f'sequencer = {{ address = "{ADDRESS}", source = "ours" }}'
    (found,) = read_feeds(write(tmp_path, f"[{row()}]", more=more)).values()
    feed = found.by_symbol["USDC"]
    assert (feed.heartbeat_s, feed.lowest_usd, feed.highest_usd) == (
        3600, Decimal("0.9"), Decimal("1.1")
    )  # fmt: skip
    assert found.sequencer == feed.address == ADDRESS
    assert found.currencies == {}


def test_feeds_of_currencies_are_apart_from_those_of_tokens(tmp_path: Path) -> None:
    euro = row(symbol='"EUR"')
    (found,) = read_feeds(write(tmp_path, f"[{row()}]", more=f"currencies = [{euro}]")).values()
    assert (list(found.by_symbol), list(found.currencies)) == (["USDC"], ["EUR"])


@pytest.mark.parametrize(
    ("rows", "number", "more", "says"),
    [
        ("[", "77", "", "not TOML"),
        (f"[{row()}]", "base", "", "[base] must be a chain's number"),
        (f"[{row()}]", "77", "surprise = 1", "must have `feeds`"),
        ("[]", "77", "", "must have a list of feeds"),
        ("{}", "77", "", "must have a list of feeds"),
        (f"[{row()}, {row()}]", "77", "", "[77] feeds has two feeds of one symbol"),
        (f"[{row()}]", "77", "currencies = []", "must have a list of currencies"),
        (f"[{row()}]", "77", "currencies = [1]", "[77] currencies[0] must have exactly symbol"),
        (f"[{row(source='')}]", "77", "", "[77] feeds[0] must have exactly symbol"),
        (f"[{row(more='1')}]", "77", "", "feeds[0] must have exactly"),
        ("[1]", "77", "", "feeds[0] must have exactly"),
        (f"[{row(heartbeat_s='0')}]", "77", "", "heartbeat_s must be 1 to 604800"),
        (f"[{row(heartbeat_s='604801')}]", "77", "", "heartbeat_s must be 1 to 604800"),
        (f"[{row(heartbeat_s='true')}]", "77", "", "heartbeat_s must be a whole number"),
        (f"[{row(lowest_usd='0.9')}]", "77", "", "lowest_usd must be text"),
        (f"[{row(lowest_usd=chr(34) + '0' + chr(34))}]", "77", "", "lowest_usd must be a decimal"),
        (f"[{row(highest_usd=chr(34) + '0.9' + chr(34))}]", "77", "", "must be less than"),
        (f"[{row(address=chr(34) + '0x12' + chr(34))}]", "77", "", "feeds[0].address"),
        (f"[{row()}]", "77", "sequencer = 1", "sequencer must have exactly"),
        (f"[{row()}]", "77", 'sequencer = { address = "x", source = "y" }', "sequencer.address"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, rows: str, number: str, more: str, says: str
) -> None:
    with pytest.raises(ValueError) as refused:
        read_feeds(write(tmp_path, rows, number, more))
    assert says in str(refused.value)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "feeds.toml"
    file.write_text("77 = 1\n")
    with pytest.raises(ValueError, match="must have `feeds`"):
        read_feeds(file)
