"""The tools of an agent, once for every framework."""
