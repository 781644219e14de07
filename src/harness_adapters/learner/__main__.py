"""`python -m harness_adapters.learner`: see `process.py`."""

import os
import sys

from harness_adapters.learner.process import main

code = main()
sys.stderr.flush()
# All is written. Taking torch down takes seconds, and the run waits for this process.
os._exit(code)
