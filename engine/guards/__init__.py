"""Rules that the engine lacks: one rule, one file, each with evidence."""
