"""The importer: a published config.json read as an architecture and a weight plan, key by key."""
