"""The foundation of all rooms above: decisions, their committer, state machines, events, jobs."""
