/* A direct read concurrent with an abort, on cores that reorder both stores and loads.
 * (src/backends/shm/lane.cpp: ShmLane::abort; exchange_run.cpp: Exchanger::run; message_transfers.cpp: RecvTransfer::poll)
 *
 * Modelled: a sender exposes its caller's memory for direct reads, then aborts the comm: it marks the comm as aborted and returns
 * the memory to the caller, which overwrites it. A reader copies the memory at any time and then checks whether the comm was
 * aborted. The sender's two stores become visible in either order and the reader's two loads execute in either order, unless
 * there is a barrier (include/medley/sdk/memory_barrier.hpp) between them.
 *   memory    what the reader copies: LENT, or REUSED by the caller      aborted    Header::aborted
 *
 * Shown: a reader that accepts its copy has the data that was exposed. Without either barrier it may have other data.
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
