"""The contract of stores."""

from __future__ import annotations

from memory_core.testing.conditions import ConditionContract
from memory_core.testing.conversations import ConversationContract
from memory_core.testing.derived import DerivedContract
from memory_core.testing.items import ItemContract
from memory_core.testing.left import LeftContract
from memory_core.testing.listings import ListingContract
from memory_core.testing.operating import OperatorContract
from memory_core.testing.owners import OwnerContract
from memory_core.testing.records import RecordContract
from memory_core.testing.searches import SearchContract
from memory_core.testing.sharing import SharingContract
from memory_core.testing.sources import SourceKeyContract
from memory_core.testing.times import TimeContract
from memory_core.testing.values import ValueContract
from memory_core.testing.vectors import VectorContract


class StoreContract(
    ConversationContract,
    LeftContract,
    DerivedContract,
    RecordContract,
    SourceKeyContract,
    ItemContract,
    ValueContract,
    ListingContract,
    ConditionContract,
    SearchContract,
    VectorContract,
    TimeContract,
    OwnerContract,
    SharingContract,
    OperatorContract,
):
    """Subclass it, define the fixture `make_memory`, and run pytest.

    `make_memory` is a function from a clock to a `Memory` over a fresh, empty store; the contract opens and closes it.
    If its memories have an embedder, define the fixture `make_embedder` too.
    """
