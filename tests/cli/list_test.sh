#!/usr/bin/env bash
# medley list prints the names that other commands take, one line each, and refuses unknown kinds.
set -euo pipefail
medley=$1
fail() { echo "FAILED: $*" >&2; exit 1; }
for pair in models:pythia-2.8b gpus:h200-sxm machines:dgx-h200 backends:shm ops:all_reduce; do
  kind=${pair%%:*} name=${pair#*:}
  "$medley" list "$kind" | grep "^$name  *[a-z]" >/dev/null || fail "medley list $kind has no line of $name"
  "$medley" list "$kind" --json - | grep "\"name\": \"$name\"" >/dev/null || fail "medley list $kind --json has no $name"
done
# Every listed model and machine is accepted by its command.
for gpu in $("$medley" list gpus | awk 'NR > 1 {print $1}'); do
  "$medley" shape --model pythia-70m --gpu "$gpu" --json - >/dev/null || fail "medley shape does not know $gpu"
done
status=0
"$medley" list colours 2>/tmp/list-err.$$ || status=$?
text=$(cat /tmp/list-err.$$)
rm -f /tmp/list-err.$$
[ $status = 2 ] || fail "an unknown kind ended with $status"
[ "$text" = 'medley: there is no list of "colours"; there are backends, gpus, machines, models, ops' ] || fail "it said: $text"
