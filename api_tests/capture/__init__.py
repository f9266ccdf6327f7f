"""The capture worker."""
