"""Readings of the running machine; every one may be missing, with a reason."""
