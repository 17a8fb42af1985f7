#!/usr/bin/env bash
# Which backends serve a comm across hosts: span.sh PROGRAM HOSTS RANKS_EACH
set -uo pipefail
. "$(dirname "$0")/hosts.sh"
make_hosts "$2"
run_ranks "$2" "$3" SPAN_EACH="$3" -- "$1"
