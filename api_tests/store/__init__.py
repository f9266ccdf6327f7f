"""The store: what is kept, in SQLite and in PostgreSQL alike."""
