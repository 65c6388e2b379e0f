"""The running machine beside its prediction, in words and figures, for pages and shared snapshots."""
