"""Import RadBot's collections through `memory-core move --format radbot`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import urlsplit, urlunsplit

from memory_adk.radbot.importer import COLLECTION, draft_of
from memory_core import InvalidInputError, QdrantServer
from memory_core.adapting import ForeignPoint, Found, Refused, foreign_points, on_core, without_key


async def radbot(source: str) -> AsyncIterator[Found | Refused]:
    """RadBot's Qdrant collection: http://host:6333 or http://host:6333/collection."""
    server, collection = _server(source)
    pages = foreign_points(server, collection)

    async def following() -> list[ForeignPoint] | None:
        return await anext(pages, None)

    try:
        while (page := await on_core(following)) is not None:
            for point in page:
                try:
                    user, draft = draft_of(f"radbot:{collection}:{point.id}", point.payload)
                    yield Found(f"point {point.id}", draft, user=user)
                except InvalidInputError as error:
                    yield Refused(f"point {point.id}", str(error))
    finally:
        await on_core(_closed, pages)


async def _closed(pages: AsyncIterator[list[ForeignPoint]]) -> None:
    """Close the connection also if not all pages were read."""
    if isinstance(pages, AsyncGenerator):
        await pages.aclose()


def _server(source: str) -> tuple[QdrantServer, str]:
    parts = urlsplit(source)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InvalidInputError(
            f"{without_key(source)!r} is not the address of a Qdrant server, such as http://localhost:6333"
        )
    url = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    return QdrantServer(url=url), parts.path.strip("/") or COLLECTION
