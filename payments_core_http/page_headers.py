"""Headers of private pages: no cache, no frames, no referrer."""

from __future__ import annotations

from collections.abc import Mapping

PRIVATE_PAGE_HEADERS: Mapping[str, str] = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
"""Each kind of page adds its own Content-Security-Policy."""


def allow_frame(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of a page that a page of another origin may frame, as its policy says: browsers
    without `frame-ancestors` would obey `X-Frame-Options`, which cannot name an origin."""
    return {name: text for name, text in headers.items() if name != "X-Frame-Options"}
