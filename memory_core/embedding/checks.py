"""Checks of what embedders are given and what their models return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_core.errors import EmbeddingError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def check_documents(texts: Sequence[str]) -> None:
    """Refuse one text where a list of texts is expected: it would be embedded character by character."""
    if isinstance(texts, str):
        raise InvalidInputError(f"embed_documents takes a list of texts, not one text: [{texts[:40]!r}]")


def known_dimensions(model: str, given: int | None, table: dict[str, int]) -> int:
    """The given dimensions, or those in the table; raises `InvalidInputError` without either."""
    dimensions = table.get(model) if given is None else given
    if dimensions is None:
        raise InvalidInputError(f"the dimensions of {model!r} are not known; give them: dimensions=…")
    if dimensions < 1:
        raise InvalidInputError(f"dimensions must be at least 1, not {dimensions}")
    return dimensions


def unit_rows(who: str, rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """The rows at unit length; raises `EmbeddingError` for one without a direction."""
    import numpy as np  # noqa: PLC0415  (takes 0.15 s, and only embedding needs it)

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise EmbeddingError(f"{who} returned a vector without a direction (zero, infinite or NaN)")
    units: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return units
