"""The lab: real programs and real TCP on emulated lines, in namespaces of their own."""
