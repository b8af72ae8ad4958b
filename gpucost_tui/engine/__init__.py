"""Runs one pass and says what happened. Knows no campaign; only its child imports torch."""
