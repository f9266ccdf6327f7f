"""Captures by an installed engine instead of the reference engine: one file an engine, started in the worker's child.

Unproven: written from the engine's sources, not run on a GPU.
"""
