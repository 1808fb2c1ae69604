"""The local web application of `weir ui`: records below a folder, and runs that are started from a form.

It listens on this machine's loopback only. Every address begins with a token that only the printed link has,
and requests that other sites make are refused (`guard`). It does nothing that the command line cannot do:
every page shows the command for it, and a run is that command.
"""

from weirlab.webapp.app import Application, application

__all__ = ["Application", "application"]
