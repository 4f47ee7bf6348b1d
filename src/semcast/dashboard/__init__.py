"""A page that shows live groups, or recorded ones, without being in them."""
