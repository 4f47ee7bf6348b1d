"""The pictures of the docs."""
