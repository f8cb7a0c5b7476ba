"""The trigger-phrase detector and the manager that stores its findings, as RadBot documents them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from memory_core import TriggerDetector
from memory_core.adapting import LastMessages

HISTORY: Final = 10
"""Number of messages in a manager's `conversation_history`."""


class MemoryDetector:
    """Finds requests to remember something in a message. See `memory_core.TriggerDetector` for the rules.

    Args:
        memory_triggers: Phrases for the kind `memories`; by default the documented ones.
        fact_triggers: Phrases for the kind `important_fact`; by default the documented ones.
    """

    def __init__(
        self, memory_triggers: Sequence[str] | None = None, fact_triggers: Sequence[str] | None = None
    ) -> None:
        default = TriggerDetector()
        self.memory_triggers = list(default.memory_triggers if memory_triggers is None else memory_triggers)
        self.fact_triggers = list(default.fact_triggers if fact_triggers is None else fact_triggers)
        self.triggers = TriggerDetector(self.memory_triggers, self.fact_triggers)

    def detect_memory_triggers(self, message: str) -> dict[str, Any]:
        """Return the finding: `detected`, `memory_type`, `text`, `tags` and `reference_previous`."""
        found = self.triggers.detect(message)
        return {
            "detected": found is not None,
            "memory_type": found.kind if found else None,
            "text": found.text or message.strip() if found else None,
            "tags": list(self.triggers.tags(message)),
            "reference_previous": bool(found and found.previous),
        }


class EnhancedMemoryManager:
    """Stores what users ask to be remembered, message by message.

    This is for code that handles messages itself. The agents of `create_enhanced_memory_agent` need no manager, because
    they mark the messages that they have stored.

    Args:
        memory_service: Any object with RadBot's `add_memory(text, user_id, memory_type, metadata)`; may be set later.
        detector: The rules for such requests.
    """

    def __init__(self, memory_service: Any = None, detector: MemoryDetector | None = None) -> None:
        self.memory_service = memory_service
        self.detector = detector or MemoryDetector()
        self.conversation_history: list[str] = []
        """The last messages, of all users; "save this" never refers to another user's."""
        self._last = LastMessages()

    def process_message(self, message: str, user_id: str) -> dict[str, Any]:
        """Store what a message asks to be remembered, if anything. A message such as "save this design" refers to the
        previous message of the same user. It blocks until that is stored.

        Returns:
            `success`, with `memory_type`, `text` and `tags`, or with a `message` that says why nothing was stored; or
            `error` if storing failed.
        """
        self.conversation_history = [*self.conversation_history, message][-HISTORY:]
        found = self.detector.detect_memory_triggers(message)
        previous = found["reference_previous"]
        text = self._last.last(user=user_id) if previous else found["text"]
        if not previous:
            self._last.note(message, user=user_id)
        if not found["detected"]:
            return {"success": False, "message": "No memory triggers detected"}
        if not text:
            return {"success": False, "message": "There is no earlier message to remember"}
        kind, tags = found["memory_type"], found["tags"]
        try:
            if self.memory_service is None:
                raise ValueError("the manager has no memory_service")  # noqa: TRY301
            metadata = {"tags": tags} if tags else {}
            self.memory_service.add_memory(text=text, user_id=user_id, memory_type=kind, metadata=metadata)
        except Exception as error:  # noqa: BLE001  (any service may be given; the document returns its errors)
            return {"error": f"Failed to store memory: {error}"}
        return {"success": True, "memory_type": kind, "text": text, "tags": tags}
