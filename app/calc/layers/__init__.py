"""Layer kinds: one module each, all described in the vocabulary of `parts`."""
