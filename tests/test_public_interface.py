"""What was public stays so, and what becomes public is entered on purpose."""

from __future__ import annotations

import importlib

from docs import public_interface


def test_no_public_name_is_gone_and_each_new_one_is_listed() -> None:
    listed = public_interface.LISTED.read_text(encoding="utf-8").split("\n")[:-1]
    found = list(public_interface.names())
    assert [name for name in listed if name not in found] == [], "deprecate them first"
    assert [name for name in found if name not in listed] == [], "enter them in the list"
    assert listed == sorted(listed)


def test_every_public_module_says_what_it_is() -> None:
    for path in public_interface.MODULES:
        assert (importlib.import_module(path).__doc__ or "").strip(), path
