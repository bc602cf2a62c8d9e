"""The command: `python -m edgepack`, and `edgepack` where scripts are installed."""

import sys

from . import _command, _edgepack


def main() -> int:
    """Runs the command line of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    return _edgepack.main(sys.argv[1:], _command.helper())


if __name__ == "__main__":
    sys.exit(main())
