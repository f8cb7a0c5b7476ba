"""Maintain stored records: merge, correct, archive and derive them, by plans that can be shown and undone."""

from memory_core.lifecycle.extraction import PatternExtractor
from memory_core.lifecycle.language_model import LanguageModel
from memory_core.lifecycle.maintaining import apply_steps, maintain, maintain_all
from memory_core.lifecycle.proposals import AnswerExtractor, Extracted, Extractor, Insight, Reflector
from memory_core.lifecycle.reflection import PatternReflector
from memory_core.lifecycle.summaries import ExtractiveSummarizer
from memory_core.lifecycle.undoing import undo_maintenance
from memory_core.lifecycle.values import Change, MaintainPolicy, Maintenance, Step

__all__ = [
    "AnswerExtractor",
    "Change",
    "Extracted",
    "ExtractiveSummarizer",
    "Extractor",
    "Insight",
    "LanguageModel",
    "MaintainPolicy",
    "Maintenance",
    "PatternExtractor",
    "PatternReflector",
    "Reflector",
    "Step",
    "apply_steps",
    "maintain",
    "maintain_all",
    "undo_maintenance",
]
