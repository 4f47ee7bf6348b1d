"""The deterministic simulator: virtual time, networks, faults, workloads, clusters, swarms."""
