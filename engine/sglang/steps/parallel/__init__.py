"""Data, context, pipeline and expert parallelism."""
