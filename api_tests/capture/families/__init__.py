"""Families of layers: against other implementations, and as whole models through both phases."""
