"""Saved configurations in SQLite: tables, sessions, repository, share tokens."""
