"""The largest value that each kind of key may have: far above any model, far below what would cost time to refuse."""

HIDDEN = 1_000_000
LAYERS = 2_000
HEADS = 100_000
HEAD_WIDTH = 100_000
WIDTH = 10_000_000
VOCABULARY = 100_000_000
POSITIONS = 1_000_000_000
EXPERTS = 100_000
COUNT = 1_000_000
LIST = 10_000
"""Entries of a list that is read item by item."""
NAMES = 15_000
"""Entries of a list of module names."""
LETTERS = 2_000_000
"""Letters of all names of such a list."""
GLOBS = 256
"""Different patterns with wildcards among them: real lists have a few, repeated for each layer."""
SETTINGS = 256
"""Different formats that a file gives to its modules."""
