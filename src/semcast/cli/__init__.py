"""The `semcast` program: one file per verb."""
