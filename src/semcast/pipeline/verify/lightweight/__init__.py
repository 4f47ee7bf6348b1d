"""Lightweight groups and clients, in runs that memory does not hold."""
