"""Editors."""
