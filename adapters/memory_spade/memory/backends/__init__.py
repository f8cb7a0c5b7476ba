"""Storage behind `AgentBaseMemory`: the interface, and the implementation over a core store."""
