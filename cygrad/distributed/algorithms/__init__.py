"""What is built on collectives: communication hooks, and loops over inputs of different lengths."""
