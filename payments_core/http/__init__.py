"""HTTP/1.1 as a client, over sockets of our own: one deadline for all, and bounded answers."""
