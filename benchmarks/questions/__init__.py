"""One file a question, in the order in which they are asked."""

NAMES = (
    "load",
    "open",
    "prune",
    "list",
    "commit",
    "append",
    "two_tables",
    "big_commit",
    "travel",
    "read",
)
