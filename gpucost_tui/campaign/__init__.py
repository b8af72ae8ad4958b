"""A campaign: its folder, seal, schedule, journal, runner, and the tables folded from them."""
