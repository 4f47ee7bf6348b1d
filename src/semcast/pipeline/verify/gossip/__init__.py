"""Gossip and loggers (`semcast.specs.gossip`), in runs that memory does not hold."""
