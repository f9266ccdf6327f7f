"""Attention backends: chosen, constrained, refused. Source: SGLang 0.5.23, ``arg_groups/attention_hook.py``."""
