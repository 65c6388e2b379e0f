"""The charts of plans side by side."""
