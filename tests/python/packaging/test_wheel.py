"""A wheel of the package, installed in its own environment, works without the build tree."""

import importlib.metadata
import json
import os
import pathlib
import site
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import pathlib, numpy, torch, torch.distributed as dist, medley, medley.torch
dist.init_process_group("medley")
tensor = torch.full((3,), float(dist.get_rank() + 1))
dist.all_reduce(tensor)
assert tensor.tolist() == [3.0] * 3
dist.destroy_process_group()
print(pathlib.Path(medley.__file__).parent)
"""


def test_a_wheel_is_whole(tmp_path):
    def run(*command, **options):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1700, **options)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-build-isolation", "--no-deps",
        "-w", tmp_path, ROOT)
    wheel, = tmp_path.glob("medley-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", wheel)
    packages = pathlib.Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    (packages / "torch_of_the_build.pth").write_text("\n".join(site.getsitepackages()))   # reuses the installed torch and numpy
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = run(python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
               "127.0.0.1:0", "program.py", cwd=tmp_path, env=environment)
    assert said.split() == [str(packages / "medley")] * 2
    assert (packages / "medley" / "lib" / "libmedley.so").exists() and (packages / "medley" / "py.typed").exists()

    # The wheel contains the command, which finds the plugins next to the library and has the package's
    # version.
    command = tmp_path / "venv" / "bin" / "medley"
    version = run(python, "-c", "import medley; print(medley.__version__)", env=environment).strip()
    assert version == importlib.metadata.Distribution.at(next(packages.glob("medley-*.dist-info"))).version
    assert run(command, "--version", env=environment).split() == ["medley", version]
    assert run(python, "-m", "medley", "--version", env=environment).split() == ["medley", version]
    told = {backend["name"] for backend in json.loads(run(command, "info", "--json", "-", env=environment))["backends"]}
    plugins = {file.name.removeprefix("libmedley_backend_").split("-")[0].split(".")[0]
               for file in (packages / "medley" / "lib" / "medley").glob("libmedley_backend_*.so")}
    assert told == plugins | {"shm"}
    run(command, "run", "-n", "2", "--", python, "-c", "import medley; medley.init(); assert medley.get_size() == 2", env=environment)

    run(python, "-m", "pip", "uninstall", "-q", "-y", "medley")
    assert not command.exists() and not list(packages.glob("medley*"))


def test_without_torch_the_error_says_how_to_build_it(tmp_path):
    package = tmp_path / "medley" / "torch"
    package.mkdir(parents=True)
    (tmp_path / "medley" / "__init__.py").write_text("")
    (package / "__init__.py").write_text((ROOT / "python" / "medley" / "torch" / "__init__.py").read_text())
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", "import medley.torch"], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode != 0 and "pip install --no-build-isolation --no-deps --force-reinstall ." in done.stderr
