"""The web server that the page, the HTTP API and MCP over HTTP have in common: uvicorn, made to survive strangers.

**A client that keeps the server waiting has a limited time, and makes room for others** (`connection.py`).
**Nothing that goes wrong on one connection ends the process, and a signal does** (`process.py`).
"""
