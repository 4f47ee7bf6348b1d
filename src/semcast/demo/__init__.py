"""What `semcast demo` shows: real processes on this host, one of them slow."""
