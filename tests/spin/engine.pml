/* The engine over its lanes: which operation starts when, on three ranks, overlapping comms and two backends.
 * (src/engine/scheduler.cpp, src/engine/progress.cpp, docs/proofs.md)
 *
 * Modelled: every rank runs a program that is hard for a mixed runtime: it issues its operations one after the other,
 * waiting immediately for those in `blocking`, then waits for all. The engine makes progress only while the rank is inside a
 * call. The backend of each operation is chosen freely, the same on all ranks, and so is the program:
 *   cycle      three comms of two ranks each, issued in a different order on every rank
 *   feed       rank 0 receives a message into memory that a collective then reads, and sends what the message's sender waits for
 *   pair       rank 0 and rank 1 each receive from and send to the other, over any backends
 *   chain      two collectives on one comm, the first of them delayed on rank 0 by a receive
 *   parting    rank 0 sends and then waits for a collective that rank 1 enters only after it has the message
 *   crossing   collectives on two comms that overlap, in opposite order on ranks 1 and 2, over shared memory on rank 0
 *   sizes      the route of the second of three collectives depends on sizes that the ranks exchange when they issue the first
 *              (in the runtime, the fourth before it); they arrive on each rank at any later time
 * An operation passes through issued, started (the library has it), taken (its input was read) and done (its output was
 * written). Backend 0 transfers a message when both sides have started (rendezvous); backend 1 takes a send's bytes
 * at once (eager) and delivers them when the sender progresses its lane (`undelivered`).
 *   place[]      a collective's number on its lane, by which libraries match
 *   version[]    the last operation that wrote a cell of memory      wanted…   the one that must have, by order of issue
 * Shown: no rank waits forever, libraries match the same operations, and every operation reads and overwrites what the
 * previous operation in its rank's order left, for every interleaving and every choice of backends.
 *
 * Abstracted: what libraries do between start and completion, threads, more than one message of a pair and tag at a
 * time (tag_matching.pml), failures. Memory is cells: an interval is one cell or another.
 *
 *   holds: every_program:                 -DPROGRAM=any
 *   fails: hazards_off:                    -DPROGRAM=feed -DHAZARDS_OFF
 *   fails: hazards_off_between_lanes:      -DPROGRAM=feed -DHAZARDS_WITHIN_LANES
 *   fails: every_rank_chooses_its_route:   -DPROGRAM=chain -DROUTE_PER_RANK
 *   fails: sends_behind_collectives:       -DPROGRAM=feed -DSENDS_BEHIND_COLLECTIVES
 *   fails: collectives_overtake:           -DPROGRAM=chain -DOVERTAKE
 *   fails: one_queue_for_all_lanes:        -DPROGRAM=cycle -DONE_QUEUE
 *   fails: one_queue_for_a_backend:        -DPROGRAM=cycle -DBACKEND_QUEUE
 *   fails: issuing_waits_for_the_start:    -DPROGRAM=feed -DISSUE_WAITS
 *   fails: waiting_moves_its_lane_only:    -DPROGRAM=parting -DOWN_LANE_ONLY
 *   fails: receives_in_order_with_sends:   -DPROGRAM=pair -DONE_QUEUE
 *   fails: false_conflicts:                -DPROGRAM=crossing -DFALSE_CONFLICTS
 *   fails: routes_open_and_overtaken:      -DPROGRAM=sizes -DOPEN_ROUTES_OVERTAKEN
 *   fails: sizes_told_by_its_own_start:    -DPROGRAM=sizes -DTOLD_BY_ITS_START
 */
#define N 3
#define K 3          /* operations of a program, numbered from 1 */
#define C 4          /* cells of memory of each rank, numbered from 1 */
#define any 0        /* one of those below */
#define cycle 1
#define feed 2
#define pair 3
#define chain 4
#define parting 5
#define crossing 6
#define sizes 7

#define chosen(program) (PROGRAM == any || PROGRAM == program)

#define issued 1
#define started 2
#define taken 3
#define done 4

#define of(r, k) ((r) * (K + 1) + (k))
#define cell(r, c) ((r) * (C + 1) + (c))
#define is_member(r, k) ((members[k] >> (r)) & 1)
#define is_collective(k) (sender[k] == N)
#define lane(r, k) (route[of(r, k)] * 8 + members[k])      /* comms are identified by their members */

byte members[K + 1];                 /* of each operation: a set of ranks */
byte sender[K + 1];                  /* of a message; N: it is a collective */
byte route[N * (K + 1)];             /* its backend */
byte order[N * (K + 1)];             /* the order in which each rank issues; 0: no more */
bool blocking[N * (K + 1)];
byte input[N * (K + 1)], output[N * (K + 1)];   /* cells; 0: none */
byte state[N * (K + 1)], place[N * (K + 1)], number[N * (K + 1)];
byte wanted_in[N * (K + 1)], wanted_out[N * (K + 1)];
byte version[N * (C + 1)], last_writer[N * (C + 1)];
bool undelivered[N * (K + 1)];       /* a message that is complete at the sender but that its lane has not sent yet */
byte by_size;                        /* the collective with an open route; 0: none */
bool told[N];                        /* the rank knows that route */
byte through;                        /* ranks at the end of their program */

#define conflict(r, a, b) ((output[of(r, a)] != 0 && (output[of(r, a)] == input[of(r, b)] || output[of(r, a)] == output[of(r, b)])) || \
                           (input[of(r, a)] != 0 && input[of(r, a)] == output[of(r, b)]))

/* Whether operation `a`, issued earlier, keeps `b` from starting on rank r. */
#ifdef HAZARDS_OFF
#define held_by_memory(r, a, b) false
#elif defined(HAZARDS_WITHIN_LANES)
#define held_by_memory(r, a, b) (conflict(r, a, b) && lane(r, a) == lane(r, b) && state[of(r, a)] < done)
#elif defined(FALSE_CONFLICTS)
#define held_by_memory(r, a, b) (state[of(r, a)] < done && (conflict(r, a, b) || (input[of(r, a)] != 0 && input[of(r, b)] != 0)))
#else
#define held_by_memory(r, a, b) (conflict(r, a, b) && state[of(r, a)] < done)
#endif
#ifdef OVERTAKE
#define held_by_lane(r, a, b) false
#else
#define held_by_lane(r, a, b) (is_collective(a) && is_collective(b) && lane(r, a) == lane(r, b) && !is_open(r, a) && state[of(r, a)] < started)
#endif
#ifdef SENDS_BEHIND_COLLECTIVES
#define held_by_kind(r, a, b) (is_collective(a) && sender[b] == r && state[of(r, a)] < started)
#elif defined(ONE_QUEUE)
#define held_by_kind(r, a, b) (state[of(r, a)] < done)
#elif defined(BACKEND_QUEUE)
#define held_by_kind(r, a, b) (route[of(r, a)] == route[of(r, b)] && state[of(r, a)] < done)
#else
#define held_by_kind(r, a, b) false
#endif

/* After a collective with an open route, none of its comm has its lane order yet. */
#define is_open(r, k) (by_size == k && !told[r])
#ifdef OPEN_ROUTES_OVERTAKEN
#define held_by_route(r, a, b) false
#else
#define held_by_route(r, a, b) (is_collective(b) && members[a] == members[b] && is_open(r, a))
#endif
#ifdef TOLD_BY_ITS_START
#define tells(r) (state[of(r, by_size)] >= started)
#else
#define tells(r) (state[of(r, 1)] >= issued)
#endif
#define all_told (tells(0) && tells(1) && tells(2))

#define earlier(r, a, b) (state[of(r, a)] != 0 && number[of(r, a)] < number[of(r, b)])
#define held(r, a, b) (earlier(r, a, b) && (held_by_memory(r, a, b) || held_by_lane(r, a, b) || held_by_kind(r, a, b) || held_by_route(r, a, b)))
#define may_start(r, k) (state[of(r, k)] == issued && !is_open(r, k) && !held(r, 1, k) && !held(r, 2, k) && !held(r, 3, k))

/* The library's condition for completion. A collective needs every member's input. */
#define has(r, k, s) (!is_member(r, k) || state[of(r, k)] >= s)
#define same_lane(r, k) (!is_member(r, k) || route[of(r, k)] == route[of(me, k)])
#define met(k, s) (has(0, k, s) && has(1, k, s) && has(2, k, s) && same_lane(0, k) && same_lane(1, k) && same_lane(2, k))
#define arrived(k) (state[of(sender[k], k)] >= taken && !undelivered[of(sender[k], k)] && route[of(sender[k], k)] == route[of(me, k)])
#define may_finish(k) (state[of(me, k)] == taken && \
  (is_collective(k) -> met(k, taken) : (sender[k] != me -> arrived(k) : (route[of(me, k)] == 1 || met(k, started)))))

inline start(k) {
  state[of(me, k)] = started;
  if
  :: is_collective(k) ->
     i = 1;                       /* its number: how many on this lane have started before */
     do
     :: i <= K ->
        if
        :: i != k && is_collective(i) && is_member(me, i) && state[of(me, i)] >= started && lane(me, i) == lane(me, k) -> place[of(me, k)]++
        :: else
        fi;
        i++
     :: else -> break
     od;
     i = 0;
     do                           /* libraries match by number: a number must mean the same operation on all ranks */
     :: i < N ->
        j = 1;
        do
        :: j <= K ->
           assert(!(is_collective(j) && j != k && is_member(i, j) && members[j] == members[k] && state[of(i, j)] >= started &&
                    route[of(i, j)] == route[of(me, k)] && i != me && place[of(i, j)] == place[of(me, k)]));
           j++
        :: else -> break
        od;
        i++
     :: else -> break
     od;
     i = 0; j = 0
  :: else
  fi
}

inline take(k) {
  assert(input[of(me, k)] == 0 || version[cell(me, input[of(me, k)])] == wanted_in[of(me, k)]);
  state[of(me, k)] = taken
}

inline finish(k) {
  if
  :: output[of(me, k)] != 0 ->
     assert(version[cell(me, output[of(me, k)])] == wanted_out[of(me, k)]);
     version[cell(me, output[of(me, k)])] = k
  :: else
  fi;
  if
  :: sender[k] == me && route[of(me, k)] == 1 -> undelivered[of(me, k)] = true
  :: else
  fi;
  state[of(me, k)] = done
}

#ifdef OWN_LANE_ONLY
#define moves(k) (w == 0 || lane(me, k) == lane(me, w))
#else
#define moves(k) true
#endif
#define can_move(k) (is_member(me, k) && moves(k) && (may_start(me, k) || state[of(me, k)] == started || may_finish(k) || undelivered[of(me, k)]))

inline move(k) {
  if
  :: may_start(me, k) -> start(k)
  :: state[of(me, k)] == started -> take(k)
  :: may_finish(k) -> finish(k)
  :: undelivered[of(me, k)] -> undelivered[of(me, k)] = false
  fi
}

inline issue(k) {
  state[of(me, k)] = issued;
  count++;
  number[of(me, k)] = count;
  if
  :: input[of(me, k)] != 0 -> wanted_in[of(me, k)] = last_writer[cell(me, input[of(me, k)])]
  :: else
  fi;
  if
  :: output[of(me, k)] != 0 -> wanted_out[of(me, k)] = last_writer[cell(me, output[of(me, k)])]; last_writer[cell(me, output[of(me, k)])] = k
  :: else
  fi;
  if
  :: may_start(me, k) -> start(k)
  :: else
  fi
}

#define is_done(n) (order[of(me, n)] == 0 || state[of(me, order[of(me, n)])] == done)
#define all_issued (at > K || order[of(me, at)] == 0)
#ifdef ISSUE_WAITS
#define returns(k) (state[of(me, k)] >= (blocking[of(me, k)] -> done : started))
#else
#define returns(k) (state[of(me, k)] == done)
#endif
/* The engine makes progress while the rank is inside a call: waiting for w, or for everything at the end. */
#define inside (w != 0 || all_issued)

proctype Rank(byte me) {
  byte at = 1, w, count, i, j;
  bool counted;
  do
  :: atomic { w == 0 && !all_issued ->
       w = order[of(me, at)];
       issue(w);
       at++;
#ifndef ISSUE_WAITS
       if
       :: !blocking[of(me, w)] -> w = 0
       :: else
       fi
#endif
     }
  :: atomic { w != 0 && returns(w) -> w = 0 }
  :: atomic { by_size != 0 && !told[me] && all_told -> told[me] = true }
  :: atomic { inside && can_move(1) -> move(1) }
  :: atomic { inside && can_move(2) -> move(2) }
  :: atomic { inside && can_move(3) -> move(3) }
  :: atomic { w == 0 && all_issued && !counted && is_done(1) && is_done(2) && is_done(3) -> counted = true; through++ }
  :: atomic { counted && through == N -> break }   /* until then still inside a call, like the barrier at a program's end */
  od
}

inline op(k, who, from) { members[k] = who; sender[k] = from }
inline order3(r, a, b, c) { order[of(r, 1)] = a; order[of(r, 2)] = b; order[of(r, 3)] = c }
inline reads(r, k, c) { input[of(r, k)] = c }
inline writes(r, k, c) { output[of(r, k)] = c }

inline choose_route(k) {
  if
  :: route[of(0, k)] = 0; route[of(1, k)] = 0; route[of(2, k)] = 0
  :: route[of(0, k)] = 1; route[of(1, k)] = 1; route[of(2, k)] = 1
#ifdef ROUTE_PER_RANK
  :: route[of(0, k)] = 1; route[of(1, k)] = 0; route[of(2, k)] = 0
#endif
  fi
}

init {
  atomic {
    if
    :: chosen(cycle) ->
       op(1, 3, N); op(2, 6, N); op(3, 5, N);
       order3(0, 1, 3, 0); order3(1, 2, 1, 0); order3(2, 3, 2, 0);
       reads(0, 1, 1); reads(1, 1, 1); reads(1, 2, 2); reads(2, 2, 1); reads(2, 3, 2); reads(0, 3, 2);
       writes(0, 1, 3); writes(1, 1, 3); writes(1, 2, 4); writes(2, 2, 3); writes(2, 3, 4); writes(0, 3, 4)
    :: chosen(feed) ->
       op(1, 3, 1); op(2, 7, N); op(3, 3, 0);        /* 1: message from 1 to 0; 2: all_reduce; 3: message from 0 to 1 */
       order3(0, 1, 2, 3); order3(1, 3, 1, 2); order3(2, 2, 0, 0);
       blocking[of(1, 3)] = true;
       writes(0, 1, 1); reads(0, 2, 1); writes(0, 2, 2); reads(0, 3, 3);
       writes(1, 3, 1); reads(1, 1, 2); reads(1, 2, 3); writes(1, 2, 3);
       reads(2, 2, 1); writes(2, 2, 1)
    :: chosen(pair) ->
       op(1, 3, 0); op(2, 3, 1);
       order3(0, 2, 1, 0); order3(1, 1, 2, 0);       /* both receive first */
       writes(0, 2, 1); reads(0, 1, 2); writes(1, 1, 1); reads(1, 2, 2)
    :: chosen(chain) ->
       op(1, 3, 1); op(2, 7, N); op(3, 7, N);
       order3(0, 1, 2, 3); order3(1, 2, 3, 1); order3(2, 2, 3, 0);
       writes(0, 1, 1); reads(0, 2, 1); writes(0, 2, 2); reads(0, 3, 3); writes(0, 3, 4);
       reads(1, 2, 1); writes(1, 2, 2); reads(1, 3, 3); writes(1, 3, 3); reads(1, 1, 4);
       reads(2, 2, 1); writes(2, 2, 2); reads(2, 3, 2); writes(2, 3, 3)
    :: chosen(parting) ->
       op(1, 3, 0); op(2, 7, N);
       order3(0, 1, 2, 0); order3(1, 1, 2, 0); order3(2, 2, 0, 0);
       blocking[of(0, 1)] = true; blocking[of(0, 2)] = true; blocking[of(1, 1)] = true;
       reads(0, 1, 1); reads(0, 2, 2); writes(0, 2, 2); writes(1, 1, 1); reads(1, 2, 2); writes(1, 2, 3);
       reads(2, 2, 1); writes(2, 2, 1)
    :: chosen(crossing) ->
       op(1, 7, N); op(2, 6, N); op(3, 3, N);        /* of all; of 1 and 2; of 0 and 1, after the first in memory */
       order3(0, 1, 3, 0); order3(1, 1, 2, 3); order3(2, 2, 1, 0);
       reads(0, 1, 1); writes(0, 1, 2); reads(0, 3, 2); writes(0, 3, 1);
       reads(1, 1, 1); writes(1, 1, 2); reads(1, 2, 1); writes(1, 2, 3); reads(1, 3, 3); writes(1, 3, 4);
       reads(2, 2, 1); writes(2, 2, 2); reads(2, 1, 1); writes(2, 1, 3)
    :: chosen(sizes) ->
       op(1, 7, N); op(2, 7, N); op(3, 7, N);
       by_size = 2;
       order3(0, 1, 2, 3); order3(1, 1, 2, 3); order3(2, 1, 2, 3);
       blocking[of(2, 1)] = true; blocking[of(1, 3)] = true;
       reads(0, 1, 1); reads(0, 2, 2); reads(0, 3, 3); writes(1, 1, 1); writes(1, 2, 1); reads(2, 3, 2)
    fi;
    choose_route(1); choose_route(2); choose_route(3);
    run Rank(0); run Rank(1); run Rank(2)
  }
}
