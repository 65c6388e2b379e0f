"""Inference servers, read by their metrics endpoints."""
