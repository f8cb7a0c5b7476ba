"""`memory-core serve`: a page and an HTTP API on a memory. Needs the extra `serve`.

The page and the API use the public operations of the library and know nothing about stores.
"""
