"""Studies: questions that Weir answers by many runs, about itself and about what others have published.

Each is a folder: its data, what it runs, what it makes of that, and its command. The entry point group
`weir.studies` of pyproject.toml makes the command one of `weir study`; a package of somebody else's may add
its own there. Studies use what `weirlab` offers in the `__all__` of its modules, and nothing else of it.
"""
