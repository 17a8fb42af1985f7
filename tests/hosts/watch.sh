#!/usr/bin/env bash
# medley watch on a job of two hosts with a shared folder: watch.sh MEDLEY SCHEDULES
# Rank 1's process stops. Its own host sees that; the other host knows no foreign process, and says in what the ranks are stuck.
set -uo pipefail
medley=$1 schedules=$2
. "$(dirname "$0")/hosts.sh"
make_hosts 2
folder=$hosts_work/recorders
fail() { echo "$*"; cat "$hosts_work"/rank*; exit 1; }

for rank in 0 1; do
  on_host $rank env MEDLEY_RANK=$rank MEDLEY_WORLD_SIZE=2 MEDLEY_LOCAL_RANK=0 MEDLEY_STORE="${host_address[0]}:29400" MEDLEY_TOKEN="$hosts_tag" \
    "$medley" replay "$schedules/dlrm.json" --backends gloo --steps 100000 --scale 0.01 --tflops 0 --trace "$folder" >"$hosts_work/rank$rank" 2>&1 &
done

look() {  # HOST KIND: what the host's watch says of a kind, as "RANKS: SENTENCE"
  on_host "$1" "$medley" watch "$folder" --once --json - 2>/dev/null | python3 -c '
import json, sys
report = json.load(sys.stdin)
print("operations", report["operations"] > 100)
for v in report["verdicts"]:
    if v["kind"] == sys.argv[1]: print(v["ranks"], v["sentence"])' "$2" 2>/dev/null
}
until_said() {  # HOST KIND TEXT: polls, since a machine may be busy
  local end=$((SECONDS + 120))
  until [[ $(look "$1" "$2") == *"$3"* ]]; do
    [ $SECONDS -lt $end ] || fail "host $1 does not say \"$3\" in: $(look "$1" "$2")"
    read -rt 0.2 <> <(:) || true
  done
}

until_said 0 none "operations True"
[[ $(look 0 gone) == *"[1]"* ]] && fail "a process of another host counts as gone: $(look 0 gone)"
for process in $(ip netns pids "${host_name[1]}"); do kill -STOP "$process"; done
until_said 1 stopped "[1] rank 1's process"
until_said 0 stuck "(ranks 0, 1): "
[[ $(look 0 stopped) == *"[1]"* ]] && fail "host 0 cannot know that rank 1 is stopped: $(look 0 stopped)"
echo "host 1 names rank 1, host 0 says: $(look 0 stuck | tail -n +2 | head -1)"
