"""SQLite: the links that people keep, and the recorded readings."""
