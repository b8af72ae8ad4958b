"""The decision note and its page: what the person who pays reads (R40, R41)."""
