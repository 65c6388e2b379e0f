"""The largest numbers that a scenario may ask for."""

MOST_CONCURRENT = 1_000_000
"""Requests at a time."""
MOST_TOKENS = 10**8
"""Tokens of a sequence."""
MOST_CARDS = 8
"""GPUs of one node, and so of tensor parallelism."""
