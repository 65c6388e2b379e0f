"""Charts of the doors in the memory wall, each drawn of what its door says."""
