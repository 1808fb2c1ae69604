"""A clumsy user: what people and scripts really pass to `weir`, tried on everything that it takes."""
