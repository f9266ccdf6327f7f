"""Speculative decoding: one algorithm, one file."""
