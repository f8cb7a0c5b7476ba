"""On a machine that is busy with other tests, agents go on without their memory, and miss what they say of it."""

from __future__ import annotations

from typing import Final

TOO_SLOW: Final = "the memory is left alone until it answers: it was too slow"
"""The log of it. What failed beside this line is tried again, and for no other reason."""
