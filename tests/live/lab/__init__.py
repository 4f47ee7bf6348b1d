"""Members in processes of their own, and what a test does to them."""
