"""The study `linux`: the simulator beside what a real Linux did with the same configurations."""
