"""Fits the efficiencies of expected times to published measurements: `make calibrate`."""
