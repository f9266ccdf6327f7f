"""The hierarchical cache: KV pages on the host and in storage."""
