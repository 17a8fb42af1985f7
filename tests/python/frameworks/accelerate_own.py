"""One of accelerate's own test scripts over gloo or over Medley: torchrun accelerate_own.py BACKEND SCRIPT.

accelerate asks for "gloo" on CPUs by itself, so Medley takes that name (medley.torch.replace). Prints how many process groups Medley made."""

import os
import runpy
import sys

backend, script = sys.argv[1:3]
os.environ["ACCELERATE_USE_CPU"] = "true"
made = 0
if backend == "medley":
    import medley.torch
    from medley.torch import _c10d

    original = _c10d.create

    def counted(*arguments):
        global made
        made += 1
        return original(*arguments)

    _c10d.create = counted
    medley.torch.replace("gloo")
sys.argv = [script]
status = 0
try:
    runpy.run_module(f"accelerate.test_utils.scripts.{script}", run_name="__main__", alter_sys=True)
except SystemExit as end:   # a script may end itself
    status = end.code
if status in (0, None) and (backend != "medley" or made > 0):
    print(f"PASSED {script} rank {os.environ['RANK']}: {made} groups over medley", flush=True)
sys.exit(status)
