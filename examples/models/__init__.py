"""Networks that examples share."""
