"""Not cupy's core."""
