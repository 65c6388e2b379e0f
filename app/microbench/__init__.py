"""The roofs that this machine's card really reaches, measured in a process of its own and only when asked for."""
