"""Recording of the live readings: what is kept of a round, by which process, and how it is shown again."""
