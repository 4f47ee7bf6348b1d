"""Servers that replicate a service (`semcast.specs.replication`), in runs that memory does not hold."""
