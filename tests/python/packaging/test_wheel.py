"""`pip install .` gives a package that works without the build tree."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_a_wheel_is_whole(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-build-isolation",
                    "--no-deps", "--target", str(tmp_path), str(ROOT)], check=True, timeout=1700)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = ("import medley, medley.torch, numpy, pathlib; medley.init(['shm']); x = numpy.ones(3); "
               "medley.all_reduce('shm', x); assert x.sum() == 3; print(pathlib.Path(medley.__file__).parent)")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.strip()) == tmp_path / "medley"
    assert (tmp_path / "medley" / "lib" / "libmedley.so").exists() and (tmp_path / "medley" / "py.typed").exists()
