"""What operators see: logs, metrics, traces, and a listener that is only for them.

Nothing here is needed to serve. The application itself uses only `requests`; `payments serve` and
`payments worker`, or the program that embeds the application, set up the rest.
"""
