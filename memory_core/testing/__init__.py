"""Contracts as pytest classes: subclass one and define its fixture to test your implementation like ours.

```python
import pytest
from memory_core import Memory
from memory_core.testing import StoreContract


class TestMyStore(StoreContract):
    @pytest.fixture
    def make_memory(self, tmp_path):
        return lambda clock: Memory(MyStore(tmp_path, clock=clock), clock=clock)
```
"""

from pkgutil import iter_modules

try:
    import pytest
except ImportError as error:
    raise ImportError("`memory_core.testing` needs pytest: pip install pytest") from error

# Before the modules with the assertions are imported, so that a failure shows the compared values.
for _module in iter_modules(__path__):
    pytest.register_assert_rewrite(f"{__name__}.{_module.name}")

from memory_core.testing.base import Ticks  # noqa: E402
from memory_core.testing.chunker import ChunkerContract  # noqa: E402
from memory_core.testing.deriving import ReflectorContract  # noqa: E402
from memory_core.testing.embedder import EmbedderContract  # noqa: E402
from memory_core.testing.reembedding import ReembeddingContract  # noqa: E402
from memory_core.testing.reopening import ReopeningContract  # noqa: E402
from memory_core.testing.reranker import RerankerContract  # noqa: E402
from memory_core.testing.store import StoreContract  # noqa: E402

__all__ = [
    "ChunkerContract",
    "EmbedderContract",
    "ReembeddingContract",
    "ReflectorContract",
    "ReopeningContract",
    "RerankerContract",
    "StoreContract",
    "Ticks",
]
