"""Expected."""
