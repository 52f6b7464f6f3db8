"""MCP: a proxy that stands between a client and a server, and judges every tool call on its way.

`wire` reads messages, `exchange` decides what becomes of each, `deciding` bounds how long that takes, `definitions`
watches what tools say of themselves; `stdio` and `http` carry bytes. Only tool calls, lists of tools and the answers
to both are looked into; everything else passes as it came, byte for byte.
"""
