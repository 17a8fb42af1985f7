/* Collectives of a hierarchical backend that are under way together. (src/algorithms/phase_order.hpp, hierarchical_transfer.hpp)
 *
 * Modelled: two hosts of two ranks. Every rank issues the collectives K0 and K1: lane order is about pairs of collectives. A phase
 * that may start does so at any time, or much later. A collective has up to three stages:
 * inside the host (0), between the ranks with one local index (1), inside the host again (2). Each stage has a private lane, which matches
 * the n-th phase that one of its ranks starts with the n-th of the others. Lanes inside a host run one phase at a time, as shm does.
 *   started, ended   bits: the stages whose phase has started or ended on a rank       log   which collective started the n-th phase
 *   passed           PhaseOrder::passed_
 * Kinds: 0 all_reduce (stages 0, 1, 2), 1 reduce_scatter (0, 1), 2 all_gather (1, 2), 3 direct all_to_all (0 and 1 at the same time).
 * Shown: ranks of a lane never match phases of different collectives, and every collective ends on every rank.
 *
 *   holds: two_sums:          -DK0=0 -DK1=0
 *   holds: sum_and_gather:    -DK0=0 -DK1=2
 *   holds: gather_and_scatter: -DK0=2 -DK1=1
 *   holds: exchange_and_sum:  -DK0=3 -DK1=0
 *   fails: no_order:          -DK0=0 -DK1=0 -DNO_ORDER
 *   fails: one_lane_inside:   -DK0=0 -DK1=0 -DONE_LANE_INSIDE
 *   fails: skips_forgotten:   -DK0=2 -DK1=0 -DSKIPS_FORGOTTEN
 */
#define RANKS 4
#define C 2

#ifdef ONE_LANE_INSIDE
#define lane_of(s) ((s) == 2 -> 0 : (s))
#else
#define lane_of(s) (s)
#endif
#define kind(c) ((c) == 0 -> K0 : K1)
/* the stages of each kind as bits */
#define mask(c) (kind(c) == 0 -> 7 : (kind(c) == 1 -> 3 : (kind(c) == 2 -> 6 : 3)))
/* rank = host * 2 + place: the other rank of the host, or the one with this place on the other host */
#define partner(r, s) ((s) == 1 -> (r) ^ 2 : (r) ^ 1)
#define at(r, c) ((r) * C + (c))
#define bit_of(s) (1 << (s))

byte started[8], ended[8], passed[8];       /* [rank][collective] */
byte count[12];                            /* [rank][lane]: phases started there */
#define counted(r, l) count[(r) * 3 + (l)]
byte log[48];                              /* [rank][lane][n]: 1 + the collective */
#define logged(r, l, n) log[((r) * 3 + (l)) * 4 + (n)]
byte number[24];                           /* [rank][collective][stage]: n */
#define number_of(r, c, s) number[((r) * C + (c)) * 3 + (s)]

#ifdef NO_ORDER
#define may_start(r, c, s) true
#else
#define has_passed(r, c, s) ((passed[at(r, c)] & bit_of(s)) != 0)
#define may_start(r, c, s) ((c) == 0 || has_passed(r, 0, s))
#endif
/* the stages before s have ended, except in a direct all_to_all */
#define may_follow(r, c, s) (kind(c) == 3 || (ended[at(r, c)] & mask(c) & (bit_of(s) - 1)) == (mask(c) & (bit_of(s) - 1)))

inline start(r, c, s) {
  d_step {
    number_of(r, c, s) = counted(r, lane_of(s));
    logged(r, lane_of(s), counted(r, lane_of(s))) = 1 + c;
    assert(logged(partner(r, s), lane_of(s), number_of(r, c, s)) == 0 || logged(partner(r, s), lane_of(s), number_of(r, c, s)) == 1 + c);
    counted(r, lane_of(s))++;
    started[at(r, c)] = started[at(r, c)] | bit_of(s);
    if
    :: s == 1 -> passed[at(r, c)] = passed[at(r, c)] | 2   /* the lane between hosts runs several at once */
    :: else
    fi
  }
}
inline end(r, c, s) {
  d_step {
    ended[at(r, c)] = ended[at(r, c)] | bit_of(s);
    passed[at(r, c)] = passed[at(r, c)] | bit_of(s)
  }
}
#define can_start(r, c, s) ((mask(c) & bit_of(s)) && !(started[at(r, c)] & bit_of(s)) && may_follow(r, c, s) && may_start(r, c, s))
#define can_end(r, c, s) ((started[at(r, c)] & bit_of(s)) && !(ended[at(r, c)] & bit_of(s)) && counted(partner(r, s), lane_of(s)) > number_of(r, c, s))
#define done(r) (ended[at(r, 0)] == mask(0) && ended[at(r, 1)] == mask(1))

proctype Rank(byte r) {
  do
  :: done(r) -> break
  :: else ->
     /* any phase that can start or end next */
     if
     :: can_start(r, 0, 0) -> start(r, 0, 0)
     :: can_start(r, 0, 1) -> start(r, 0, 1)
     :: can_start(r, 0, 2) -> start(r, 0, 2)
     :: can_start(r, 1, 0) -> start(r, 1, 0)
     :: can_start(r, 1, 1) -> start(r, 1, 1)
     :: can_start(r, 1, 2) -> start(r, 1, 2)
     :: can_end(r, 0, 0) -> end(r, 0, 0)
     :: can_end(r, 0, 1) -> end(r, 0, 1)
     :: can_end(r, 0, 2) -> end(r, 0, 2)
     :: can_end(r, 1, 0) -> end(r, 1, 0)
     :: can_end(r, 1, 1) -> end(r, 1, 1)
     :: can_end(r, 1, 2) -> end(r, 1, 2)
     fi
  od
}

init {
  atomic {
#ifndef SKIPS_FORGOTTEN
    byte r = 0;
    do
    :: r < RANKS -> passed[at(r, 0)] = 7 & ~mask(0); passed[at(r, 1)] = 7 & ~mask(1); r++
    :: else -> break
    od;
#endif
    run Rank(0); run Rank(1); run Rank(2); run Rank(3)
  }
}
