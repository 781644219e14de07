"""`python -m harness_adapters.learner`: see `process.py`."""

import sys

from harness_adapters.learner.process import main

sys.exit(main())
