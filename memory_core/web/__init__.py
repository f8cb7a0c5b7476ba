"""The web server that the page, the HTTP API and MCP over HTTP have in common: uvicorn, made to survive strangers.

**Whoever keeps the server waiting waits for a limited time, and makes room for others** (`connection.py`).
**Nothing that goes wrong on one connection ends the process, and a signal does** (`process.py`).
"""
