"""Scenarios side by side: what was asked, what differs, and how the numbers stand to each other."""
