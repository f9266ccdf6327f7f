"""What keeps secrets secret."""
