"""Communication hooks of DistributedDataParallel."""
