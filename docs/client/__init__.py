"""Writes `payments_core_http/client/generated` from the OpenAPI document: `make client`."""
