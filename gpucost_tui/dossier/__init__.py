"""The dossier (R41): recomputing a campaign from its files, and packing it for somebody else."""
