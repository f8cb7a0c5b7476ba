"""Runs SPADE's XMPP server in its own process: `python -m memory_spade.testing.pyjabber_process DIRECTORY`.

The server, pyjabber, listens on a free port of the loopback interface and prints that port. The process ends when its
standard input is closed, so that it cannot outlive its parent.
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
IDLE_SECONDS: Final = 24 * 60 * 60
"""The time for which a client may be silent; by default pyjabber drops clients that are silent for a minute."""


async def serve(directory: Path) -> None:
    """Serve until cancelled; accounts and certificates are stored in `directory`."""
    for name in ("ca_cert.pem", "ca_key.pem"):
        shutil.copy(CERTIFICATES / name, directory)
    # Without these two settings the server would also listen on the LAN address and offer an open admin page on port
    # 9090. Removing the upload plugin, which starts that page, makes the server accept logins but deliver no messages.
    module: Any = pyjabber.server  # there are no parameters for these settings
    module.setup_query_local_ip = lambda: None
    server = module.Server(
        Parameters(
            host="localhost",
            client_port=0,
            server_port=0,
            connection_timeout=IDLE_SECONDS,
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
    # Not `sys.stdin`: its lock would be copied, locked, into forked worker processes and never be released.
    while os.read(0, 4096):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)  # includes pyjabber's pool of worker processes


def main() -> None:
    """Entry point. The process must be the leader of its process group."""
    logger.remove()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # On the standard loop, the next stanza can arrive before the switch to TLS, and logins fail.
    uvloop.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
