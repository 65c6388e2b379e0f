"""Benchmarks: figures as ratios against something measured in the same run. Never part of the tests."""
