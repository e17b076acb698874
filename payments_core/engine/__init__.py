"""What every room above builds on: decisions and their committer, state machines, events, jobs."""
