"""Peaks."""
