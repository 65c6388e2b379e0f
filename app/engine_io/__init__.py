"""Engine io."""
