"""`python -m semcast`: the same as the command `semcast`."""

import sys

from semcast.cli.main import main

sys.exit(main())
