"""The database's forms, oldest first."""
