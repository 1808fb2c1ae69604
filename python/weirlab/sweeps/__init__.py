"""Sweeps: a scenario varied over many axes, run on one machine or a cluster, kept in a store."""
