"""The port to routers, which exchange assets, also across chains; CCTP, and a simulated router."""
