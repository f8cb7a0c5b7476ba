"""An agent for `adk web` and `adk run`."""
