"""How fast deltalakedb is, beside the peers people would use instead. `make bench` runs it."""
