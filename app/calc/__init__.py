"""The arithmetic: pure functions of numbers and frozen dataclasses. No web, no database, no file, no chart library."""
