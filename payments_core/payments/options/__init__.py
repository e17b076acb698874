"""Options: the ways in which one Payment can be funded."""
