"""The house itself: packaging, import rules, documents that name real files."""
