"""Sweeps: grids of simulations over Spark's executors. `spec` and `store` work without Spark."""
