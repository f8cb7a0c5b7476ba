"""Several frameworks side by side on one memory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from memory_spade.testing.xmpp import XmppServer

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package, and two of them share `frameworks`


@pytest.fixture(scope="session")
def server() -> Iterator[XmppServer]:
    """The server of SPADE's agents."""
    with XmppServer() as running:
        yield running


@pytest_asyncio.fixture
async def container() -> AsyncIterator[None]:
    """SPADE without the agents of other tests."""
    from frameworks import own_container  # takes seconds, because it imports all of them

    with own_container():
        yield
