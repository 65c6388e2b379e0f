"""How each engine divides the memory of a GPU."""
