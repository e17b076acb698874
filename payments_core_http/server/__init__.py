"""The socket side: connections, framing, limits, threads."""
