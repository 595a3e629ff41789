"""``python -m controller.cli`` is ``polyplane``."""

import sys

from controller.cli import main

sys.exit(main())
