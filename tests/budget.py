"""What each suite of tests may take, held against the logs of ctest that ./test leaves.

    python3 tests/budget.py out/ctest-release.log out/ctest-asan.log …            # prints overruns
    python3 tests/budget.py --write out/ctest-release.log out/ctest-asan.log …    # writes tests/budget.txt from these runs

A suite is the first word of a test's name (conformance_gloo: conformance) under one preset. tests/budget.txt has its seconds on
two quiet cores, summed over its tests. An overrun is a warning, since machines differ; CI fails only where all suites together,
or one of a minute or more, take three times what they may. A suite without a line is one to give a line.
"""

import pathlib
import re
import sys

BUDGET = pathlib.Path(__file__).parent / "budget.txt"
RESULT = re.compile(r"Test +#\d+: (\w+) \.* *(?:\*\*\*)?(?:Passed|Skipped|Failed|Timeout)\s+([\d.]+) sec")
SPARE, MOST = 1.5, 3.0   # a warning beyond the first, a failure beyond the second


def measured(logs):
    """Seconds by 'preset suite'."""
    out = {}
    for log in logs:
        preset = pathlib.Path(log).stem.removeprefix("ctest-")
        for name, seconds in RESULT.findall(pathlib.Path(log).read_text()):
            suite = f"{preset} {name.split('_')[0]}"
            out[suite] = out.get(suite, 0) + float(seconds)
    return out


def budget():
    lines = [line.split() for line in BUDGET.read_text().split("\n") if line.strip() and not line.startswith("#")]
    return {f"{preset} {suite}": float(seconds) for preset, suite, seconds in lines}


def write(took):
    lines = ["# Seconds that each suite may take on two quiet cores; tests/budget.py --write makes this file."]
    lines += [f"{suite} {max(1, round(seconds))}" for suite, seconds in sorted(took.items())]
    BUDGET.write_text("\n".join(lines) + "\n")


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    took = measured(words)
    if "--write" in sys.argv:
        write(took)
        return 0
    allowed = budget()
    failed = False
    for suite, seconds in sorted(took.items(), key=lambda item: -item[1]):
        if suite not in allowed:
            print(f"budget: {suite} took {seconds:.0f} s and has no line in tests/budget.txt")
        elif seconds > SPARE * allowed[suite] + 2:
            print(f"budget: {suite} took {seconds:.0f} s of {allowed[suite]:.0f} s")
            failed = failed or (allowed[suite] >= 60 and seconds > MOST * allowed[suite])
    known = sum(allowed[suite] for suite in took if suite in allowed)
    whole = sum(seconds for suite, seconds in took.items() if suite in allowed)
    print(f"budget: {whole:.0f} s of {known:.0f} s in all suites that have one")
    return 1 if failed or whole > MOST * max(known, 1) else 0


if __name__ == "__main__":
    sys.exit(main())
