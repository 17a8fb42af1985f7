#!/bin/bash
# Checks one Promela model with spin: every line "holds: NAME: FLAGS" in its head must hold for all
# interleavings, and every line "fails: NAME: FLAGS" (a seeded mistake) must be caught. Exits 77 without spin.
# Usage: check.sh MODEL.pml FOLDER_FOR_GENERATED_FILES
set -u
model=$(realpath "$1")
folder=$2
compiler=${CC:-cc}
for tool in spin "$compiler"; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: $tool is not installed, so $(basename "$model") cannot be checked"
    exit 77
  fi
done
mkdir -p "$folder"
wrong=0
checks=0
while read -r expected name flags; do
  expected=${expected%:} name=${name%:}
  checks=$((checks + 1))
  place=$folder/$(basename "$model" .pml)-$name
  rm -rf "$place" && mkdir "$place" && cd "$place" || exit 1
  # A claim (LTL) needs the acceptance cycles that -DSAFETY leaves out, and weak fairness (-f).
  kind=-DSAFETY search=
  if [[ $flags == *LIVENESS* ]]; then kind=-DNFAIR=3 search="-a -f"; fi
  # shellcheck disable=SC2086  # the flags are a list
  if ! spin -a $flags "$model" >spin.log 2>&1 ||
     ! "$compiler" -O1 -w $kind -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=1900 -o pan pan.c >compile.log 2>&1; then
    echo "WRONG   $name: the model does not compile"
    cat spin.log compile.log 2>/dev/null
    wrong=1
    continue
  fi
  # shellcheck disable=SC2086
  timeout 300 ./pan -m1000000 $search >pan.log 2>&1
  status=$?
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  seconds=$(sed -n 's/^pan: elapsed time \([0-9.]*\) seconds.*/\1/p' pan.log)
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  # A search that ended early proves nothing.
  if [[ $status -ne 0 || -z $errors ]] || grep -q 'Search not completed\|max search depth too small\|out of memory' pan.log; then
    if [[ ${errors:-0} == 0 ]]; then
      echo "WRONG   $name: the search did not end within 300 s and 1.9 GB (see $place/pan.log)"
      wrong=1
      continue
    fi
  fi
  found=holds
  [[ $errors != 0 ]] && found=fails
  what=$(sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' pan.log | head -1)
  if [[ $found == "$expected" ]]; then
    echo "as told $name $found${what:+ ($what)}: ${states:-?} states, ${seconds:-0} s"
  else
    echo "WRONG   $name $found but should have been one that $expected${what:+: $what} (spin -t in $place shows how)"
    wrong=1
  fi
done < <(grep -E '^ *\*? *(holds|fails): ' "$model" | sed -E 's/^ *\*? *//')
if [[ $checks == 0 ]]; then
  echo "$(basename "$model") names no checks"
  exit 1
fi
exit $wrong
