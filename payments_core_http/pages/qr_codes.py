"""QR codes as inline SVG, which a strict Content-Security-Policy allows."""

from __future__ import annotations

from functools import lru_cache

import markupsafe
import segno

_QUIET_MODULES = 4
"""The quiet zone that ISO/IEC 18004 requires."""


@lru_cache(256)  # a page that is requested repeatedly has the same codes
def render_qr_code(text: str) -> markupsafe.Markup:
    """The code as SVG, dark on light in any color scheme: many cameras read nothing else."""
    code = segno.make(text, error="m", micro=False)
    svg: str = code.svg_inline(
        border=_QUIET_MODULES, dark="#000", light="#fff", omitsize=True, svgclass="qr",
        lineclass=None,
    )  # fmt: skip
    return markupsafe.Markup(svg)
