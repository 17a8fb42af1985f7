"""``python -m medley`` is the command ``medley``."""

from ._command import main

main()
