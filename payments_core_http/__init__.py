"""The WSGI application over `payments_core`: it translates, and decides nothing about money."""

from payments_core_http.app import create_app

__all__ = ["create_app"]
