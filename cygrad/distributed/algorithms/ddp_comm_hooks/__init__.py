"""Communication hooks of DistributedDataParallel: what is sent instead of the gradients."""
