"""The model: found, checked and fingerprinted before the seal, without torch."""
