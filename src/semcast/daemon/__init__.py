"""The daemon: one member of a domain on a host, for many local programs in any language."""
