"""Semcast: group communication with semantic reliability."""

__version__ = "0.1.0"
