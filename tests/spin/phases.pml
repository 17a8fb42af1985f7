/* Collectives of a hierarchical backend that are under way together. (src/algorithms/phase_order.hpp, hierarchical_transfer.hpp)
 *
 * Modelled: two hosts of two ranks. Every rank issues the collectives K0 and K1: lane order is about pairs of collectives. A phase
 * that may start does so at any time, or much later. A collective has up to three stages:
 * inside the host (0), between the ranks with one local index (1), inside the host again (2). Each stage has a private lane, which matches
 * the n-th phase that one of its ranks starts with the n-th of the others. Lanes inside a host run one phase at a time, as shm does.
 *   started, ended   bits: the stages whose phase has started or ended on a rank       log   which collective started the n-th phase
 *   passed           PhaseOrder::passed_
 * Kinds: 0 all_reduce (stages 0, 1, 2), 1 reduce_scatter (0, 1), 2 all_gather (1, 2), 3 direct all_to_all (0, and 1 on a lane of all ranks, at
 * the same time), 4 broadcast from the first host (0, 1, 2 there, 1, 2 on the other), 5 all_reduce of one element (1 only at the first place).
 * Shown: ranks of a lane never match phases of different collectives, and every collective ends on every rank.
 *
 *   holds: two_sums:          -DK0=0 -DK1=0
 *   holds: sum_and_gather:    -DK0=0 -DK1=2
 *   holds: gather_and_scatter: -DK0=2 -DK1=1
 *   holds: exchange_and_sum:  -DK0=3 -DK1=0
 *   holds: sum_and_broadcast: -DK0=0 -DK1=4
 *   holds: element_and_sum:   -DK0=5 -DK1=0
 *   fails: no_order:          -DK0=0 -DK1=0 -DNO_ORDER
 *   fails: one_lane_inside:   -DK0=0 -DK1=0 -DONE_LANE_INSIDE
 *
 * Pairs in the other order hold too (up to 69 s each, so ./test leaves them out), and so do two direct all_to_all; an all_reduce before one
 * has too many states for 1.9 GB.
 */
#define RANKS 4
#define C 2

#define kind(c) ((c) == 0 -> K0 : K1)
#ifdef ONE_LANE_INSIDE
#define lane_of(c, s) ((s) == 2 -> 0 : (s))
#else
#define lane_of(c, s) ((s) == 1 && kind(c) == 3 -> 3 : (s))
#endif
/* the stages of each kind on a rank (host * 2 + place) as bits */
#define mask(r, c) (kind(c) == 0 -> 7 : (kind(c) == 1 -> 3 : (kind(c) == 2 -> 6 : (kind(c) == 3 -> 3 : \
                   (kind(c) == 4 -> ((r) < 2 -> 7 : 6) : ((r) & 1 -> 5 : 7))))))
/* the other rank of the host, or the one with this place on the other host */
#define partner(r, l) ((l) == 1 -> (r) ^ 2 : (r) ^ 1)
#define at(r, c) ((r) * C + (c))
#define bit_of(s) (1 << (s))

byte started[8], ended[8], passed[8];       /* [rank][collective] */
byte count[16];                            /* [rank][lane]: phases started there */
#define counted(r, l) count[(r) * 4 + (l)]
byte log[64];                              /* [rank][lane][n]: 1 + the collective */
#define logged(r, l, n) log[((r) * 4 + (l)) * 4 + (n)]
/* what rank o has started as its n-th phase there is this collective, or nothing yet */
#define matches(o, l, n, c) (logged(o, l, n) == 0 || logged(o, l, n) == 1 + (c))
#define all_match(r, l, n, c) (matches(partner(r, l), l, n, c) && ((l) != 3 || (matches((r) ^ 2, l, n, c) && matches((r) ^ 3, l, n, c))))
#define all_there(r, l, n) (counted(partner(r, l), l) > (n) && ((l) != 3 || (counted((r) ^ 2, l) > (n) && counted((r) ^ 3, l) > (n))))
byte number[24];                           /* [rank][collective][stage]: n */
#define number_of(r, c, s) number[((r) * C + (c)) * 3 + (s)]

#ifdef NO_ORDER
#define may_start(r, c, s) true
#else
#define has_passed(r, c, s) ((passed[at(r, c)] & bit_of(s)) != 0)
#define may_start(r, c, s) ((c) == 0 || has_passed(r, 0, s))
#endif
/* the stages before s have ended, except in a direct all_to_all */
#define may_follow(r, c, s) (kind(c) == 3 || (ended[at(r, c)] & mask(r, c) & (bit_of(s) - 1)) == (mask(r, c) & (bit_of(s) - 1)))

inline start(r, c, s) {
  d_step {
    number_of(r, c, s) = counted(r, lane_of(c, s));
    logged(r, lane_of(c, s), counted(r, lane_of(c, s))) = 1 + c;
    assert(all_match(r, lane_of(c, s), number_of(r, c, s), c));
    counted(r, lane_of(c, s))++;
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
    passed[at(r, c)] = passed[at(r, c)] | bit_of(s);
    if
    :: ended[at(r, c)] == mask(r, c) -> passed[at(r, c)] = 7
    :: else
    fi
  }
}
#define can_start(r, c, s) ((mask(r, c) & bit_of(s)) && !(started[at(r, c)] & bit_of(s)) && may_follow(r, c, s) && may_start(r, c, s))
#define can_end(r, c, s) ((started[at(r, c)] & bit_of(s)) && !(ended[at(r, c)] & bit_of(s)) && all_there(r, lane_of(c, s), number_of(r, c, s)))
#define done(r) (ended[at(r, 0)] == mask(r, 0) && ended[at(r, 1)] == mask(r, 1))

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
    byte r = 0;
    do
    :: r < RANKS -> passed[at(r, 0)] = 7 & ~mask(r, 0); passed[at(r, 1)] = 7 & ~mask(r, 1); r++
    :: else -> break
    od;
    run Rank(0); run Rank(1); run Rank(2); run Rank(3)
  }
}
