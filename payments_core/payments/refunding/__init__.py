"""A partner's decisions on a Payment: refunds, and the ends that nobody expected."""
