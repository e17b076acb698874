"""An HTTP/1.1 client over our own sockets: one deadline per request, and bounded answers."""
