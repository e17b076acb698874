"""Client sessions: short, account-bound access for a browser or a mobile app."""
