"""The corpus: reading, sealing, fingerprints, strata, and the checks on its identifiers (R5-R7)."""
