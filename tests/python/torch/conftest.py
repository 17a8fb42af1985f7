import pathlib
import sys

import pytest

pytest.importorskip("medley.torch", reason="torch, or medley's backend for it, is not there")
sys.path.insert(0, str(pathlib.Path(__file__).parent))   # for `import groups`
