"""The graph configuration: who wins, what the engine switches off by itself, what it refuses."""
