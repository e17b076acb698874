"""The second generation of the interface: routes, wire classes, and handlers by resource."""
