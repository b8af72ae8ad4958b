"""Reading durations and deciding: what a raw table says, and what it does not settle."""
