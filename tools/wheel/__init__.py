"""A wheel with compiled protocols."""
