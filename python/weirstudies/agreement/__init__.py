"""The study `agreement`: the simulator beside the lab."""
