"""What a memory does with what it holds already: plans first, then applied, and reversible."""

from memory_core.lifecycle.maintaining import add_once, apply_steps, maintain, maintain_all, undo_maintenance
from memory_core.lifecycle.plan import Change, MaintainPolicy, Maintenance, Step

__all__ = [
    "Change",
    "MaintainPolicy",
    "Maintenance",
    "Step",
    "add_once",
    "apply_steps",
    "maintain",
    "maintain_all",
    "undo_maintenance",
]
