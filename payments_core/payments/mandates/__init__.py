"""Mandates: standing approvals that `collect` Payments draw on."""
