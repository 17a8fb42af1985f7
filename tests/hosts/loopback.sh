#!/usr/bin/env bash
# Two hosts that share the loopback interface, such as containers in one network: gloo finds an address.
#   loopback.sh MEDLEY PROGRAM
set -euo pipefail
medley=$1 program=$2
unshare --uts true 2>/dev/null || { echo "it needs root, and a system that allows host names of its own"; exit 77; }
# shellcheck disable=SC2016  # expanded on each rank
SPAN_EACH=2 "$medley" run -n 4 --no-prefix -- unshare --uts bash -c 'hostname "host$((MEDLEY_RANK / 2))" && exec "$@"' bash "$program"
