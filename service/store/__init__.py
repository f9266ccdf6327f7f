"""What is kept: SQL is written in this package alone."""
