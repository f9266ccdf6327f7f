"""Model id to facts: the hub, a local folder, an inline config, the packaged catalogue."""
