"""Communication hooks, and loops over inputs of different lengths."""
