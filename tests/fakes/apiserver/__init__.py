"""A small API server in memory, true to the protocol, over real HTTP on loopback.

It lists in pages, watches with bookmarks, keeps resource versions, refuses conflicts, merges
patches the way the real one does for the objects we use, and breaks in every way we must survive.
`server.ApiServer` is where to start.
"""
