"""Live chaos: real processes, ordinary programs, drawn faults, and a judgement. See docs/chaos.md."""
