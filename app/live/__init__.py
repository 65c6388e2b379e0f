"""The running machine beside its prediction."""
