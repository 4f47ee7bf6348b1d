"""Replication servers over extended virtual synchrony (Amir 1995, chapters 6 and 7): pure."""
