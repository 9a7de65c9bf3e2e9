"""Delta's own vocabulary, pure: nothing here reads a file, a clock or a database."""
