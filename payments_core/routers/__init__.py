"""The port to routers, which exchange assets, also across chains; a simulated router."""
