#!/usr/bin/env bash
# The page in a browser: every chart is drawn, filters and keys work, nothing is loaded or logged, and axe has no serious finding.
set -euo pipefail
. "$(dirname "$0")/prepare.sh"
medley=$2 make_folder=$3
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no chromium; ./setup web installs it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$make_folder" "$work/full" 50000           # two ranks: 100,000 operations
"$make_folder" "$work/before" 64
sed -i 's/"median_us": 800/"median_us": 950/' "$work/before/mixes.json"
mkdir "$work/little" "$work/empty"
cp "$work/full/bench.json" "$work/little"
"$medley" report "$work/full" -o "$work/full.html"
"$medley" report "$work/full" --against "$work/before" -o "$work/two.html" >/dev/null
"$medley" report "$work/little" -o "$work/little.html" >/dev/null
"$medley" report "$work/empty" -o "$work/empty.html" >/dev/null
cd "$web"
node test/page.mjs "$browser" "$work"
