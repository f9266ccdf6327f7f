"""Attention backends: what a forward pass needs to know about its batch, and where its state lives."""
