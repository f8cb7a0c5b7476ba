"""A proxy before an HTTP server that counts requests and the bytes of answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit


class Counter:
    """Listens on a port of its own, in a thread with a loop. A context manager."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = parts.hostname or "", parts.port or 6333
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""
        self.received = 0
        """Bytes of answers, as sent."""
        self.requests = 0

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, sender = await asyncio.open_connection(*self._to)

        def count_requests(some: bytes) -> None:
            self.requests += some.count(b" HTTP/1.1\r\n")

        def count_bytes(some: bytes) -> None:
            self.received += len(some)

        await asyncio.gather(_pass_on(reader, sender, count_requests), _pass_on(there, writer, count_bytes))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: Callable[[bytes], None]) -> None:
    try:
        while some := await reader.read(1 << 16):
            note(some)
            writer.write(some)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
