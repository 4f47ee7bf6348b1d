"""Protocol families: pure state machines, one folder each."""
