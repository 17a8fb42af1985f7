/* How a rank goes to sleep and is woken, with the store buffers of real cores (an event count).
 * (src/backends/shm/host_peers.cpp: prepare, sleep, cancel, wake, ring; src/engine/engine_wait.cpp: Engine::sleep)
 *
 * Modelled: two ranks alternately set a flag and wait for the other's, ROUNDS times. A store to a flag enters
 * the rank's store buffer and becomes visible at any later time, even after the rank's next load (TSO; weaker machines
 * do the same); the drain is a separate process. A locked instruction (fetch_add) first drains the own buffer.
 *   flag[]       any flag, counter or pipe end that a peer polls      rings[], sleepers[]   Bell
 *   sleeping     HostPeers::sleeping_                             asleep[]              in FUTEX_WAIT
 * The waiting rank announces itself, yields, polls once more, and sleeps unless the bell has rung since its ticket. The
 * other stores its flag, reads `sleeping` without a fence, and rings when it is not zero.
 *
 * Shown: with the timed sleep nobody hangs, whatever the store buffers do (TIMED: every wait ends, under weak
 * fairness). With the yield, before which every earlier store leaves its buffer (YIELD), no wake-up is lost at all:
 * nobody hangs even though the sleep has no timeout. Without either, spin finds the lost wake-up. On AArch64 the load of
 * `sleeping` (LDAR) waits until the flag's store (STLR) is visible, which is FENCE; there loads may also be reordered, so
 * the load of `sleeping` is an acquire: reading the bell before the count loses a wake-up.
 *
 * Abstracted: spinning before sleeping; more than two ranks and several threads on one bell; wrapping sequences.
 *
 *   holds: timed_never_hangs:          -DTIMED
 *   holds: timed_every_wait_ends:      -DTIMED -DLIVENESS
 *   holds: yield_loses_no_wake_up:     -DYIELD
 *   holds: fence_loses_no_wake_up:     -DFENCE
 *   fails: untimed_without_yield:      -DNOTHING
 *   fails: untimed_wait_without_end:   -DNOTHING -DLIVENESS
 *   fails: no_poll_after_announcement: -DYIELD -DNO_LAST_POLL
 *   fails: ticket_after_last_poll:     -DYIELD -DLATE_TICKET
 *   fails: look_for_sleepers_first:    -DYIELD -DLOOK_FIRST
 *   fails: bell_read_before_count:     -DFENCE -DBELL_FIRST
 */
#define ROUNDS 2
#define other (1 - me)

byte flag[2];        /* in memory */
byte buffered[2];    /* in its writer's store buffer; 0: none */
byte rings[2];
byte sleepers[2];
byte sleeping;
bool asleep[2];
byte at_end;

proctype Drain(byte me) {
end:
  do
  :: buffered[me] != 0 -> atomic { flag[me] = buffered[me]; buffered[me] = 0 }
  od
}

inline wake() {
  if
  :: sleeping != 0 ->
     if
#ifdef BELL_FIRST
     :: early != 0 ->
#else
     :: sleepers[other] != 0 ->
#endif
        atomic { buffered[me] == 0; rings[other]++ };       /* locked, so the own buffer is empty */
        asleep[other] = false                               /* FUTEX_WAKE */
     :: else
     fi
  :: else
  fi
}

inline raise(k) {
#ifdef BELL_FIRST
  early = sleepers[other];
#endif
#ifdef LOOK_FIRST
  wake();
#endif
  atomic { buffered[me] == 0; buffered[me] = k };
#ifdef FENCE
  buffered[me] == 0;
#endif
#ifndef LOOK_FIRST
  wake()
#else
  skip
#endif
}

inline cancel() {
  atomic { buffered[me] == 0; sleeping-- };
  sleepers[me]--
}

inline await(k) {
  do
  :: flag[other] >= k -> break
  :: flag[other] < k ->
     ticket = rings[me];
     atomic { buffered[me] == 0; sleepers[me]++ };
     sleeping++;
#ifdef YIELD
     buffered[other] == 0;
#endif
#ifndef NO_LAST_POLL
     if
     :: flag[other] >= k -> cancel(); break
     :: else
     fi;
#endif
#ifdef LATE_TICKET
     ticket = rings[me];
#endif
     atomic {                                               /* FUTEX_WAIT compares and sleeps in one step */
       if
       :: rings[me] == ticket -> asleep[me] = true
       :: else
       fi
     };
     if
     :: !asleep[me]
#ifdef TIMED
     :: atomic { asleep[me] -> asleep[me] = false }         /* timed out */
#endif
     fi;
     ticket = 0;
     cancel()
  od
}

proctype Rank(byte me) {
  byte ticket, round = 1;
#ifdef BELL_FIRST
  byte early;
#endif
  do
  :: round > ROUNDS -> break
  :: else ->
     if
     :: me == 0 -> raise(round); await(round)
     :: else -> await(round); raise(round)
     fi;
     round++
  od;
  at_end++
}

init {
  atomic { run Drain(0); run Drain(1); run Rank(0); run Rank(1) }
}

#ifdef LIVENESS
ltl every_wait_ends { <> (at_end == 2) }
#endif
