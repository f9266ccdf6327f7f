"""HTTP and the command line; no torch."""
