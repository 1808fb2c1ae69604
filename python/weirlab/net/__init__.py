"""Tests of the path to a server elsewhere: what is run, and whether it can be trusted."""
