"""The lab's own process: `python -m weirlab.lab.process FD`.

It is a fresh interpreter that loads the compiled module only: the kernel moves a process into new
namespaces only while it has a single thread. It reads one request from the socket of that number, writes
views of the run while it goes on, and one answer at the end; each is a line of JSON.
"""

from __future__ import annotations

import json
import socket
import sys

from weirlab import _native


def main() -> int:
    """Does what is asked, and returns the exit code."""
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        parent.set_inheritable(False)
        lines = parent.makefile("rw", encoding="utf-8")
        request = lines.readline()

        def show(view: str) -> bool:
            return tell(f'{{"view": {view}}}')

        def tell(line: str) -> bool:
            try:
                lines.write(line + "\n")
                lines.flush()
            except OSError:
                return False
            return True

        try:
            answer = _native.lab(request, show)
        except _native.NativeError as error:
            tell(json.dumps({"error": str(error)}))
            return 1
        tell(f'{{"answer": {answer}}}')
        return 0


if __name__ == "__main__":
    sys.exit(main())
