"""What operators see: logs, metrics, traces, and the listener that is for them alone.

Nothing here is needed to serve. `requests` is what the application itself touches; the rest is put
together by `payments serve` and `payments worker`, or by whoever embeds the application.
"""
