"""Lets `python -m streamcore.cli` stand for `streamcore`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
