"""The client protocol `semcast-client/1`: how programs talk to a daemon of lightweight groups.

Pure: bytes come in and go out, time is an argument. docs/client-protocol.md describes it for other languages.
"""
