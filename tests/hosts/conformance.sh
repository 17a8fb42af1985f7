#!/usr/bin/env bash
# The conformance suite on 2 hosts with 2 ranks each: conformance.sh BUILD BACKEND [FILTER]. BACKEND may be a pair such as shm+gloo.
set -uo pipefail
build=$1 backend=$2 filter=${3-*}
between=${backend#*+}
ls "$build"/lib/medley/libmedley_backend_"$between"*.so >/dev/null 2>&1 ||
  { echo "skipped: this build has no $between backend"; exit 77; }
. "$(dirname "$0")/hosts.sh"
make_hosts 2

settings=(MEDLEY_TEST_BACKEND="$backend" MEDLEY_TEST_RANKS=launched MEDLEY_TEST_REDUCED=1
          MEDLEY_TEST_FULL="${MEDLEY_TEST_FULL:-0}")
[ "$backend" = "$between" ] || settings+=(MEDLEY_BACKENDS="${backend%+*},$between,$backend" MEDLEY_RULES="*=$backend")
if [ "$between" != mpi ]; then
  run_ranks 2 2 "${settings[@]}" -- "$build/bin/conformance" --gtest_brief=1 --gtest_filter="$filter"
  exit
fi

mpirun_ranks 2 2 "${settings[@]}" -- "$build/bin/conformance" --gtest_brief=1 --gtest_filter="$filter"
