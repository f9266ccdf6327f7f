"""Tests that read like the contract; they mirror the packages."""
