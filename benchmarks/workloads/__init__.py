"""The workloads: one file each, with a `WORKLOAD`. The folder is the registry."""
