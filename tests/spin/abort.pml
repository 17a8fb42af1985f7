/* A direct read beside an abort, on cores that keep neither stores nor loads in order.
 * (src/backends/shm/lane.cpp: ShmLane::abort; exchange_run.cpp: Exchanger::run; message_transfers.cpp: RecvTransfer::poll)
 *
 * Modelled: a giver lends its caller's memory, then gives the comm up: it marks the comm as aborted and hands the memory back to
 * the caller, who writes something else into it. A reader copies the memory at any time and then looks whether the comm was aborted.
 * The giver's two stores reach memory in either order, the reader's two loads are taken in either order, unless a barrier
 * (include/medley/sdk/memory_barrier.hpp) stands between them.
 *   memory    what the reader copies: LENT, or REUSED by the caller      aborted    Header::aborted
 *
 * Shown: a reader that takes its copy for good has what was lent. Without either barrier it may have something else.
 *
 *   holds: both_barriers:
 *   fails: no_write_barrier:   -DNO_WRITE_BARRIER
 *   fails: no_read_barrier:    -DNO_READ_BARRIER
 */
#define LENT 1
#define REUSED 2

byte memory = LENT;
bool aborted;

proctype Giver() {
#ifdef NO_WRITE_BARRIER
  if
  :: aborted = true; memory = REUSED
  :: memory = REUSED; aborted = true
  fi
#else
  aborted = true;
  memory = REUSED
#endif
}

proctype Reader() {
  byte copy;
  bool given_up;
#ifdef NO_READ_BARRIER
  if
  :: copy = memory; given_up = aborted
  :: given_up = aborted; copy = memory
  fi;
#else
  copy = memory;
  given_up = aborted;
#endif
  assert(given_up || copy == LENT)
}

init {
  atomic { run Giver(); run Reader() }
}
