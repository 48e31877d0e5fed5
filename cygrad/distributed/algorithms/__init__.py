"""Communication hooks, and training on uneven inputs."""
