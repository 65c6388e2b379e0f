"""Optimizations."""
