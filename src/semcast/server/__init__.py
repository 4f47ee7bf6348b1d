"""A replicated database over HTTP: the server, and the client.

Needs the packages of the extra `server` (`pip install semcast[server]`).
"""
