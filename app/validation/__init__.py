"""Predicted against measured: every published measurement beside what is predicted for it."""
