"""Mixture-of-experts runners, and the all-to-all backends between expert-parallel ranks."""
