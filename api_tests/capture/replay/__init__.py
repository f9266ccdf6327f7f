"""Replay against eager: planted faults are found, and sound captures are never called wrong."""
