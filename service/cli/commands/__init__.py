"""The commands: one file each, with its arguments and what it does."""
