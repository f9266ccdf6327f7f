"""Prefill, decode and encoder as separate servers."""
