#!/usr/bin/env bash
# On other systems than Debian, ./setup names what is missing and fails; if nothing is missing it succeeds silently.
#   setup_test.sh SETUP-SCRIPT
set -euo pipefail
setup=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/none" "$work/all"
for program in bash env; do ln -s "$(command -v $program)" "$work/none/$program"; done
status=0
said=$(PATH=$work/none bash "$setup" 2>&1) || status=$?
[ $status -eq 1 ] || { echo "without a compiler, setup ended with $status: $said"; exit 1; }
[[ $said == *"not Debian"*"missing: g++ cmake ninja pkg-config"* ]] || { echo "setup does not name what is missing: $said"; exit 1; }

# Everything of this machine except apt-get: this machine has built Medley, so nothing is missing.
for program in bash env g++ as ld cmake ninja pkg-config; do ln -s "$(command -v $program)" "$work/all/$program"; done
said=$(PATH=$work/all bash "$setup" run 2>&1) || { echo "setup misses something on a machine that has built Medley: $said"; exit 1; }
[ -z "$said" ] || { echo "setup says without need: $said"; exit 1; }

status=0
said=$(bash "$setup" nonesuch 2>&1) || status=$?
[ $status -eq 2 ] || { echo "setup nonesuch ended with $status"; exit 1; }
echo "setup names what is missing"
