"""What `help` shows of the application fits on a screen."""

from __future__ import annotations

import pydoc

from payments_core_http import create_app


def test_help_is_short() -> None:
    assert len(pydoc.plain(pydoc.render_doc(create_app))) < 2_000
