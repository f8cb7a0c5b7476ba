"""SPADE's own XMPP server, pyjabber, alone in a process: `python -m memory_spade.testing.pyjabber_process DIRECTORY`.

It listens on one free port of the loopback interface, prints that port, and ends when its standard input does, so
that it cannot outlive whoever started it.
"""

from __future__ import annotations

try:
    import pyjabber.server
    import uvloop
    from loguru import logger
    from pyjabber.server_parameters import Parameters
except ImportError as error:
    raise ImportError("`pyjabber_process` needs SPADE: pip install 'memory-core[spade]'") from error

import asyncio
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

CERTIFICATES: Final = Path(pyjabber.server.SERVER_FILE_PATH, "network", "certs")


async def serve(directory: Path) -> None:
    """Serve until cancelled; accounts and certificates live in `directory`."""
    for name in ("ca_cert.pem", "ca_key.pem"):
        shutil.copy(CERTIFICATES / name, directory)
    # Without these two it would listen on the LAN address too, and offer an open admin page on port 9090. Taking the
    # upload plugin away instead, which starts that page, makes the server accept logins and deliver nothing.
    module: Any = pyjabber.server  # there are no parameters for what is set on it and asked of it here
    module.setup_query_local_ip = lambda: None
    server = module.Server(
        Parameters(
            host="localhost",
            client_port=0,
            server_port=0,
            # A database in memory is lost as soon as a client disconnects during a query.
            database_path=str(directory / "accounts.db"),
            cert_path=str(directory),
        )
    )
    server._http_server = None  # noqa: SLF001
    serving = asyncio.create_task(server.start())
    ready = asyncio.create_task(server.ready.wait())
    await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        port: int = server._client_listener.sockets[0].getsockname()[1]  # noqa: SLF001
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
    await serving


def _end_with_parent() -> None:
    # Not through `sys.stdin`: its lock, held here, would be copied into forked worker processes and never come free.
    while os.read(0, 4096):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)  # the pool of worker processes that pyjabber keeps as well


def main() -> None:
    """Entry point. The process must lead a process group of its own."""
    logger.remove()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # On the standard loop the next stanza can overtake the switch to TLS, and logins fail.
    uvloop.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
