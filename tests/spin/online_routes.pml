/* Routes that change in a running job (docs/proofs.md, "Routes that change in a running job"; src/engine/online_routes.cpp). The
 * collectives of a comm form windows. With the last operation of window w a rank sends its times of window w - 1 to all others; before the
 * first operation of window k gets its route, the rank combines all ranks' times of window k - LAG and plans the window: its length, the
 * route in use, and an operation that tries the other route. Ranks measure whatever they like, issue async or wait for each operation,
 * and get messages at any time. Every operation must take one route on all ranks, and every rank must come to its end.
 * Left out: how the decider weighs times (any function of the agreed value will do), lanes and hazards (engine.pml).
 *
 *   holds: two_ranks:                       -DRANKS=2 -DOPS=11
 *   holds: three_ranks:                     -DRANKS=3 -DOPS=7
 *   holds: shortest_lag_that_works:         -DRANKS=2 -DOPS=9 -DLAG=2
 *   fails: decided_by_own_times:            -DRANKS=2 -DOPS=9 -DOWN_TIMES
 *   fails: switched_when_times_arrive:      -DRANKS=2 -DOPS=9 -DAT_ARRIVAL
 *   fails: later_operations_overtake:       -DRANKS=2 -DOPS=9 -DOVERTAKE
 *   fails: window_needs_its_predecessor:    -DRANKS=2 -DOPS=9 -DLAG=1
 *   fails: missing_times_count_locally:     -DRANKS=2 -DOPS=9 -DMISSING_LOCALLY
 */
#ifndef LAG
#define LAG 3
#endif
#define FIRST_LENGTH 2                    /* of windows that nothing was measured for */
#define missing 2                         /* a time that a rank does not know yet: it prevails over all others */
#define unset 255
#define WINDOWS (OPS + 1)

chan times[RANKS * RANKS] = [WINDOWS] of { byte };   /* from * RANKS + to: messages of one tag, in order */
byte route_of[OPS];                       /* that the first rank to know it took */
byte routed_by[OPS];                      /* how many ranks have given the operation its route, and so start it */

#if RANKS == 2
#define all_arrived(me) (len(times[(1 - me) * RANKS + me]) > 0)
#else
#define all_arrived(me) (len(times[((me + 1) % 3) * RANKS + me]) > 0 && len(times[((me + 2) % 3) * RANKS + me]) > 0)
#endif
/* Whether the next operation can take its place: its window has room, is one of the first, or the times that decide it are here. */
#define next_window (window + 1)
#define may_assign_slot(me) (place < length || next_window < LAG || all_arrived(me))

inline tell_others(value) {
  peer = 0;
  do
  :: peer < RANKS -> if :: peer != me -> times[me * RANKS + peer]!value :: else fi; peer++
  :: else -> break
  od
}

inline combine(about) {                   /* agreed = the largest of all ranks' times of that window */
  agreed = own[about];
  peer = 0;
  do
  :: peer < RANKS ->
     if
     :: peer != me ->
        times[peer * RANKS + me]?value;
#ifdef MISSING_LOCALLY
        if :: own[about] != missing && value != missing && value > agreed -> agreed = value :: else fi
#elif !defined(OWN_TIMES)
        if :: value > agreed -> agreed = value :: else fi
#endif
     :: else
     fi;
     peer++
  :: else -> break
  od
}

inline plan() {
  if :: agreed == 1 -> in_use = 1 - in_use :: else fi;
  length = (agreed == 0 -> 1 : FIRST_LENGTH)
}

inline begin_window() {
  window++;
  place = 0;
  length = FIRST_LENGTH;
  trial = 0;
  if
  :: window >= LAG -> combine(window - LAG); plan(); trial = (agreed == missing -> 1 : 0)
  :: else
  fi
}

inline assign_window_slot(operation) {
  if :: place == length -> begin_window() :: else fi;
  route = ((trial && place == 0) -> 1 - in_use : in_use);
  assert(route_of[operation] == unset || route_of[operation] == route);
  route_of[operation] = route;
  routed_by[operation]++;
  place++;
  if
  :: place == length && window > 0 ->
     if :: value = 0 :: value = 1 :: value = missing fi;   /* whatever this rank measured */
     own[window - 1] = value;
     tell_others(value)
  :: else
  fi
}

proctype Rank(byte me) {
  byte issued, head, window, place, in_use, trial, agreed, value, peer, route;
  byte length = FIRST_LENGTH, awaited = unset;
  byte own[WINDOWS];
#ifdef OVERTAKE
  bool overtaken;
#endif
  do
  :: atomic { issued < OPS && awaited == unset ->
       issued++;
       if :: true :: awaited = issued - 1 fi }              /* async, or a call that waits */
  :: atomic { head < issued && may_assign_slot(me) ->
#ifdef OVERTAKE
       if :: overtaken -> overtaken = false; head++ :: else -> assign_window_slot(head); head++ fi }
  :: atomic { !overtaken && head + 1 < issued && place == length && may_assign_slot(me) ->
       assign_window_slot(head + 1); assign_window_slot(head); head++; overtaken = true }
#else
       assign_window_slot(head); head++ }
#endif
#ifdef AT_ARRIVAL
  :: atomic { window >= LAG && place < length && all_arrived(me) -> combine(window + 1 - LAG); plan(); if :: length < place -> length = place :: else fi }
#endif
  :: atomic { awaited != unset && routed_by[awaited] == RANKS -> awaited = unset }
  :: atomic { issued == OPS && awaited == unset && routed_by[OPS - 1] == RANKS -> break }
  od
}

init {
  atomic {
    byte i;
    do
    :: i < OPS -> route_of[i] = unset; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < RANKS -> run Rank(i); i++
    :: else -> break
    od
  }
}
