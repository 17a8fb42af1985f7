#!/usr/bin/env bash
# What ranks on two hosts detect when the network fails: outage.sh PROGRAM CASE
#   link      the link of host 1 goes down: lost on both sides
#   off       host 1 goes down: its processes stop and its link is cut
#   one_way   packets from host 1 are lost, packets to it arrive: lost on both sides
#   heals     an outage of 3 s that heals: no rank is lost
#   stopped   the processes of host 1 stop but its kernel keeps running: no rank is lost, and they continue later
#   killed    the process of a rank is killed: every other rank detects it
# The detector's own messages say how long a host did not answer. The machine may be busy, so the script only checks that
# the operations' deadline, 120 s, was not what ended them.
set -uo pipefail
program=$1 case=$2
. "$(dirname "$0")/hosts.sh"
make_hosts 2
switch=$hosts_tag-switch
export OUTAGE_STOP=$hosts_work/stop

size=4 processes=()
for ((rank = 0; rank < size; rank++)); do
  on_host $((rank / 2)) env MEDLEY_RANK=$rank MEDLEY_WORLD_SIZE=$size MEDLEY_LOCAL_RANK=$((rank % 2)) \
    MEDLEY_STORE="${host_address[0]}:29400" MEDLEY_TOKEN="$hosts_tag" "$program" >"$hosts_work/rank$rank" 2>&1 &
  processes+=($!)
done

show_all() { for ((rank = 0; rank < size; rank++)); do sed "s/^/[$rank] /" "$hosts_work/rank$rank"; done; }
fail() { echo "$case: $*"; show_all; exit 1; }
now_ms() { date +%s%3N; }
# await RANK TEXT SECONDS: waits until the rank has printed TEXT
await() {
  local end=$((SECONDS + $3))
  until grep -q "$2" "$hosts_work/rank$1" 2>/dev/null; do
    [ $SECONDS -lt $end ] || fail "rank $1 did not print \"$2\" within $3 s"
    sleep 0.05
  done
}
cut_link() { ip -n "$switch" link set port1 down; }
mend_link() { ip -n "$switch" link set port1 up; }
signal_host() { for process in $(ip netns pids "${host_name[1]}"); do kill "-$2" "$process"; done; }
# expect_lost RANKS…: each of these reports within 60 s that a rank was lost
expect_lost() {
  local rank longest=0 took
  for rank in "$@"; do
    await "$rank" "^failed [0-9]* rank lost" 60
    took=$(($(sed -n 's/^failed \([0-9]*\) .*/\1/p' "$hosts_work/rank$rank") - began))
    [ $took -gt $longest ] && longest=$took
  done
  echo "$case: every rank knew after $longest ms at most"
}
# expect_sentence RANKS…: one of these ranks suspected the others' host within a second and lost it within six, by its own message
expect_sentence() {
  local files=() rank
  for rank in "$@"; do files+=("$hosts_work/rank$rank"); done
  grep -hE "suspects ranks? .*: its host has not answered for (0\.[789]|1\.[0-9]) s; it counts as lost after 5 s" "${files[@]}" | head -1 |
    grep . || fail "nobody of ranks $* suspected the host in time"
  grep -hoE "rank [0-9] was lost: (rank [0-9] gave it up: )?its host has not answered for 5\.[0-9] s" "${files[@]}" | head -1 |
    grep . || fail "nobody of ranks $* lost the host in time"
}

for ((rank = 0; rank < size; rank++)); do await $rank ready 60; done
began=$(now_ms)
case $case in
  link)
    cut_link
    expect_lost 0 1 2 3
    expect_sentence 0 1
    expect_sentence 2 3 ;;
  off)
    signal_host 1 STOP
    cut_link
    expect_lost 0 1
    expect_sentence 0 1
    signal_host 1 CONT   # it then finds itself alone
    expect_lost 2 3 ;;
  one_way)
    # To an address that no host has.
    ip -n "${host_name[1]}" neigh replace "${host_address[0]}" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
    expect_lost 0 1 2 3
    expect_sentence 0 1 ;;
  heals | stopped)
    if [ "$case" = heals ]; then
      cut_link
      sleep 3   # the outage itself
      mend_link
    else
      signal_host 1 STOP
      sleep 8   # longer than the limit for a cut host
      signal_host 1 CONT
    fi
    # The ranks run until one of them has withdrawn the suspicion.
    for ((tries = 0; tries < 600; tries++)); do
      grep -q "no longer suspects" "$hosts_work"/rank? && break
      sleep 0.05
    done
    touch "$OUTAGE_STOP"
    for ((rank = 0; rank < size; rank++)); do await $rank "finished\|failed" 60; done
    grep -q failed "$hosts_work"/rank? && fail "somebody was lost"
    if [ "$case" = heals ]; then
      grep -hE "suspects ranks? .*: its host has not answered" "$hosts_work"/rank? | head -1 | grep . || fail "nobody suspected anything"
    else
      grep -hE "does not hear ranks? .* though its host answers" "$hosts_work"/rank[01] | head -1 | grep . || fail "nobody noticed the silence"
    fi
    grep -hE "no longer suspects ranks? .*: it answers again" "$hosts_work"/rank? | head -1 | grep . || fail "nothing was taken back"
    echo "$case: nobody was lost" ;;
  killed)
    victim=$(ip netns pids "${host_name[1]}" | head -1)
    kill -KILL "$victim"
    survivors=()
    for ((tries = 0; tries < 1200 && ${#survivors[@]} < 3; tries++)); do
      sleep 0.05
      survivors=()
      for rank in 0 1 2 3; do grep -q "^failed" "$hosts_work/rank$rank" && survivors+=("$rank"); done
    done
    [ ${#survivors[@]} -eq 3 ] || fail "only ranks ${survivors[*]} know of it"
    expect_lost "${survivors[@]}" ;;
  *) echo "unknown case $case"; exit 2 ;;
esac
touch "$OUTAGE_STOP"
