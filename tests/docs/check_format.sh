#!/usr/bin/env bash
# Every C++ file is as clang-format 14 writes it. Other versions differ in details, so they are not asked.
set -euo pipefail
cd "$(dirname "$0")/../.."
skip() { echo "skipped: $*"; exit 77; }
program=$(command -v clang-format-14 || command -v clang-format) || skip "clang-format is not installed"
"$program" --version | grep -q ' 14\.' || skip "this is $("$program" --version), and the tree is formatted by version 14"
find src include tests examples bench \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' \) -print0 |
  xargs -0 -n 32 "$program" --dry-run -Werror || { echo "run: clang-format -i FILES"; exit 1; }
