"""The protocol: a TOML file that fixes everything before the first duration is seen (R1)."""
