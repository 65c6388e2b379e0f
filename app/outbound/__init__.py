"""The one way out: fetches a file from an allowed host, and from nowhere else."""
