#!/usr/bin/env bash
# Builds the site of the documentation with every warning an error: site_test.sh FOLDER. MkDocs is installed into a virtual
# environment below the folder; exits 77 with a sentence where that is not possible.
set -euo pipefail
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
if [ ! -x "$folder/venv/bin/mkdocs" ]; then
  python3 -m venv "$folder/venv" >"$folder/install.log" 2>&1 || { echo "skipped: no virtual environment can be made here"; exit 77; }
  timeout 300 "$folder/venv/bin/pip" install -q --disable-pip-version-check mkdocs-material >>"$folder/install.log" 2>&1 ||
    { echo "skipped: mkdocs-material cannot be installed here: $(tail -n 1 "$folder/install.log")"; exit 77; }
fi
cd "$root"
# Not with -q: it hides warnings from --strict, too.
NO_MKDOCS_2_WARNING=1 "$folder/venv/bin/mkdocs" build --strict -d "$folder/html" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
[ -s "$folder/html/index.html" ] && [ -s "$folder/html/reference-commands/index.html" ]
