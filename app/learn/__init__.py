"""The story of the memory wall: chapters of numbers that are recomputed for the reader's own model and card."""
