"""The text that launches a scenario, for each engine that publishes one, and a scenario out of such a text."""
