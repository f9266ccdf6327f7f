"""Captures, run from the queue in the database by the local supervisor."""
