"""The studies `autorate` and `cfosspeed`: shapers beside each other."""
