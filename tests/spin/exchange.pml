/* The exchange of shm collectives: arrival flags, rotating slots, direct reads. (src/backends/shm/exchange*.cpp)
 *
 * Modelled: N ranks run the same K exchanges, each of a kind chosen freely:
 *   all_staged     everyone gives through its slot and takes from everyone        (all_gather, all_reduce …)
 *   from_staged    the root gives through its slot, nobody else waits for others  (broadcast, scatter)
 *   to_staged      everyone gives through its slot, only the root takes           (gather, reduce)
 *   all_direct     everyone reads everyone's own memory
 *   from_direct    everyone reads the root's own memory
 *   pipelined      as from_staged, but the root arrives first and lays out while the others read  (broadcast, scatter)
 *   scattered      as from_direct, but the root lays the part of the next rank into that rank's own slot  (scatter)
 *   to_streamed    everyone gives through all its slots, only the root takes: the first chunk of a streamed gather
 *   flag[]         Board::line(rank, k).word, its sequence      slot[]      Board::staging, or a line's payload
 *   finished[]     Board::finished                              memory[]    the caller's buffer, free after the call
 *   laid[]         Board::laid, of a staged exchange
 *   checked        Exchanger::checked_                          may_begin   Exchanger::can_begin
 * Shown: a reader in exchange k finds k's data, at the beginning and at the end of reading; no slot and no caller's
 * memory is overwritten while a rank may still read it; no rank waits forever.
 *
 * Abstracted: payload is the exchange's number; writing a slot passes through a torn state. Release and acquire on the
 * flags make what was written before a flag visible to a rank that sees it, so memory is sequentially consistent here;
 * where that is not enough, see sleep.pml. Sequences are counted modulo WRAP, as 32-bit ones are modulo 2^32. The real
 * depth is 4; two and three give the same cases with fewer states. Streaming waits for all arrivals and then is pipe.pml.
 * A pipelined slot is laid out in one step: further ones repeat it with more of the slot.
 *
 *   holds: two_ranks_depth_2:    -DN=2 -DD=2 -DK=6
 *   holds: three_ranks_depth_2:  -DN=3 -DD=2 -DK=3
 *   holds: three_ranks_depth_3:  -DN=3 -DD=3 -DK=4 -DFEW
 *   holds: sequences_wrap:       -DN=2 -DD=2 -DK=10 -DWRAP=8 -DFEW
 *   holds: pipelined_2:          -DN=2 -DD=2 -DK=6 -DPIPELINED
 *   holds: pipelined_3:          -DN=3 -DD=2 -DK=4 -DPIPELINED -DFEW
 *   holds: scattered_2:          -DN=2 -DD=2 -DK=6 -DSCATTERED -DFEW
 *   holds: scattered_3:          -DN=3 -DD=2 -DK=4 -DSCATTERED -DFEW
 *   fails: scatter_unawaited:    -DN=3 -DD=2 -DK=3 -DSCATTERED -DFEW -DSCATTER_UNAWAITED
 *   fails: laid_not_reset:       -DN=2 -DD=2 -DK=5 -DPIPELINED -DLAID_NOT_RESET
 *   fails: laid_before_data:     -DN=2 -DD=2 -DK=3 -DPIPELINED -DLAID_BEFORE_DATA
 *   fails: laid_unawaited:       -DN=2 -DD=2 -DK=3 -DPIPELINED -DLAID_UNAWAITED
 *   fails: no_depth_check:       -DN=2 -DD=2 -DK=4 -DNO_DEPTH_CHECK
 *   fails: depth_off_by_one:     -DN=2 -DD=2 -DK=4 -DDEPTH_OFF_BY_ONE
 *   fails: flag_before_data:     -DN=2 -DD=2 -DK=3 -DFLAG_BEFORE_DATA
 *   fails: finished_equal:       -DN=3 -DD=3 -DK=3 -DFINISHED_EQUAL
 *   fails: finished_unawaited:   -DN=2 -DD=2 -DK=2 -DFINISHED_UNAWAITED
 *   fails: finished_wraps:       -DN=2 -DD=2 -DK=7 -DWRAP=8 -DFINISHED_WRAPS
 */
#ifndef WRAP
#define WRAP 64
#endif
#define torn 255
#define open 0
#define all_staged 1
#define from_staged 2
#define to_staged 3
#define all_direct 4
#define from_direct 5
#define pipelined 6
#define scattered 7
#define to_streamed 8

#define at(rank, k) ((rank) * D + (k) % D)
#define seq(k) ((k) % WRAP)
/* Exchanger::can_begin: how far a sequence is ahead of another, within half of all sequences. */
#define at_least(a, b) (((a) + WRAP - (b)) % WRAP < WRAP / 2)
/* A finished counter may be as old as the last direct read, any number of exchanges ago, so it must not wrap; and its
 * reader may have finished a later exchange with another sender, so it must not be compared for equality. */
#ifdef FINISHED_EQUAL
#define has_finished(r, k) (finished[r] == k)
#elif defined(FINISHED_WRAPS)
#define has_finished(r, k) at_least(seq(finished[r]), seq(k))
#else
#define has_finished(r, k) (finished[r] >= k)
#endif

byte flag[N * D];
byte slot[N * D];
byte memory[N];
bool laid[N * D];
byte finished[N];
byte taken[N];        /* the last exchange whose streamed data was taken from this rank */
byte kind[K + 1];     /* of each exchange; chosen when the first rank reaches it, cleared when all have finished */
byte root[K + 1];
byte through[K + 1];

inline choose() {
  if
  :: kind[k] != open
  :: else ->
  if
  :: kind[k] = all_staged
  :: kind[k] = from_direct; root[k] = 0
#ifdef PIPELINED
  :: kind[k] = pipelined; root[k] = 0
  :: kind[k] = pipelined; root[k] = N - 1
#endif
#ifdef SCATTERED
  :: kind[k] = scattered; root[k] = 0
  :: kind[k] = to_streamed; root[k] = N - 1
#endif
#ifndef FEW
  :: kind[k] = from_direct; root[k] = N - 1
  :: kind[k] = all_direct
  :: kind[k] = to_staged; root[k] = 0
#endif
  :: kind[k] = from_staged; root[k] = N - 1
  fi
  fi
}

inline forget() {
  through[k]++;
  if
  :: through[k] == N ->
     kind[k] = open; root[k] = 0; through[k] = 0;
     for (r : 0 .. N - 1) {   /* data that no rank may read any more need not be distinguished */
       for (i : 0 .. D - 1) {
         if
         :: slot[r * D + i] == k -> slot[r * D + i] = 0
         :: else
         fi
       }
     }
  :: else
  fi;
  k++; took = false; needed = 0; r = 0; i = 0
}

inline may_begin(k) {
#ifdef NO_DEPTH_CHECK
  skip
#else
#ifdef DEPTH_OFF_BY_ONE
  needed = (k > D -> k - D : 0);   /* mistakes arrival at an exchange for its completion */
#else
  needed = (k + 1 > D -> k + 1 - D : 0);
#endif
  /* Checks the flags that have arrived; those not needed yet may be checked later. */
  do
  :: checked >= needed -> break
  :: checked < k - 1 ->
     r = 0;
     do
     :: r < N && at_least(flag[at(r, checked + 1)], seq(checked + 1)) -> r++
     :: r < N && checked >= needed && !at_least(flag[at(r, checked + 1)], seq(checked + 1)) -> break
     :: r == N -> checked++; break
     od
  od
#endif
}

#define to_root (kind[k] == to_staged || kind[k] == to_streamed)
#define from_root (kind[k] == from_staged || kind[k] == from_direct || kind[k] == pipelined || kind[k] == scattered)
#define gives (kind[k] == all_staged || kind[k] == all_direct || (to_root && me != root[k]) || (from_root && me == root[k]))
#define direct (kind[k] == all_direct || kind[k] == from_direct || kind[k] == scattered)
#define in_steps (kind[k] == pipelined || kind[k] == scattered || kind[k] == to_streamed)
#define waits_for_all (kind[k] == all_staged || kind[k] == all_direct || (to_root && me == root[k]))
#define takes_from(r) (r != me && (waits_for_all || (from_root && r == root[k])))
/* The only reader of this root that finds its part in its own slot. */
#define next_of(r) (((r) + 1) % N)

proctype Rank(byte me) {
  byte k = 1, needed, checked, r, i;
  bool took;
  do
  :: k > K -> break
  :: else ->
     atomic { choose() };
     may_begin(k);
#ifdef FLAG_BEFORE_DATA
     flag[at(me, k)] = seq(k);
#endif
     if
     :: gives && direct -> memory[me] = k
     :: gives && !direct && !in_steps -> slot[at(me, k)] = torn; slot[at(me, k)] = k
     :: else
     fi;
#ifndef LAID_NOT_RESET
     if
     :: gives && in_steps -> laid[at(me, k)] = false
     :: else
     fi;
#endif
#ifndef FLAG_BEFORE_DATA
     flag[at(me, k)] = seq(k);
#endif
     if
     :: gives && kind[k] == pipelined ->
#ifdef LAID_BEFORE_DATA
        laid[at(me, k)] = true;
#endif
        slot[at(me, k)] = torn; slot[at(me, k)] = k;
        laid[at(me, k)] = true
     :: gives && kind[k] == scattered ->
#ifndef SCATTER_UNAWAITED
        flag[at(next_of(me), k)] == seq(k);
#endif
        slot[at(next_of(me), k)] = torn; slot[at(next_of(me), k)] = k;
        laid[at(me, k)] = true
     :: gives && kind[k] == to_streamed ->
        r = 0;
        do
        :: r < N -> flag[at(r, k)] == seq(k); r++
        :: r == N -> break
        od;
        atomic { for (i : 0 .. D - 1) { slot[me * D + i] = k }; i = 0 };
        laid[at(me, k)] = true
     :: else
     fi;
     r = 0;
     do
     :: r < N && takes_from(r) ->
        flag[at(r, k)] == seq(k);
#ifndef LAID_UNAWAITED
        (!in_steps || (kind[k] == scattered && me != next_of(r)) || laid[at(r, k)]);
#endif
        if
        :: kind[k] == scattered && me == next_of(r) -> assert(slot[at(me, k)] == k); assert(slot[at(me, k)] == k); took = true
        :: kind[k] == to_streamed ->
           atomic { for (i : 0 .. D - 1) { assert(slot[r * D + i] == k) }; i = 0 };
           atomic { for (i : 0 .. D - 1) { assert(slot[r * D + i] == k) }; i = 0 };
           taken[r] = k
        :: direct && !(kind[k] == scattered && me == next_of(r)) -> assert(memory[r] == k); assert(memory[r] == k); took = true
        :: else -> assert(slot[at(r, k)] == k); assert(slot[at(r, k)] == k)
        fi;
        r++
     :: r < N && !takes_from(r) -> r++
     :: r == N -> break
     od;
     if
     :: took -> finished[me] = k
     :: else
     fi;
     if
     :: gives && kind[k] == to_streamed -> taken[me] == k
     :: else
     fi;
#ifndef FINISHED_UNAWAITED
     if
     :: gives && direct ->
        r = 0;
        do
        :: r < N -> (r == me || has_finished(r, k)); r++
        :: r == N -> break
        od
     :: else
     fi;
#endif
     if
     :: gives && direct -> memory[me] = 0   /* the call has returned and the caller uses its memory again */
     :: else
     fi;
     if
     :: waits_for_all && checked == k - 1 -> checked = k
     :: else
     fi;
     d_step { forget() }
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < N -> run Rank(i); i++
    :: i == N -> break
    od
  }
}
