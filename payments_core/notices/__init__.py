"""Notices that providers send to `/providers/{kind}/{name}`: stored once, then routed."""
