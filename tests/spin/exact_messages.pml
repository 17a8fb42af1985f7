/* Messages of one pair and tag on a comm with exact sizes (docs/proofs.md, "Messages of exact size"): each size belongs to one
 * of two lanes, each lane matches in order, and the engine starts messages of a lane in order of issue. Rank 0 sends K messages and
 * rank 1 receives K, with all combinations of sizes. A right program (equal sizes on both ends) must pair the k-th send with
 * the k-th receive. In a wrong one nobody may wait for ever, and no receive may count as right whose message has another number:
 * both ends note (number, size) at issue, and the control threads compare the notes.
 * Left out: rendezvous and buffering within a lane (tag_matching.pml), and memory hazards, which delay starts arbitrarily here.
 *
 *   holds: right_programs:               -DRIGHT
 *   holds: wrong_programs_are_found:     -DWRONG
 *   fails: lanes_start_out_of_order:     -DRIGHT -DANY_ORDER
 *   fails: routes_by_room:               -DRIGHT -DBY_ROOM
 *   fails: sizes_not_compared:           -DWRONG -DNO_COMPARISON
 *   fails: sizes_compared_as_a_set:      -DWRONG -DAS_A_SET
 */
#define K 3
#define none 255

byte sent[K + 1], posted[K + 1];         /* sizes: 0 small, 1 large; from 1 */
byte lane_out[K + 1], lane_in[K + 1];
bool out_started[K + 1], in_started[K + 1];
byte issued_out, issued_in;
byte queue[2 * (K + 1)], length[2];      /* of each lane: numbers of the messages on the way, in order */
byte got[K + 1];                         /* by receive: the number of its message */
byte open_in;                            /* receives that are not complete */
bool failed;                             /* the comm has failed on both ranks */
bool checked;                            /* the last comparison found no difference */

/* Receives of a lane that started and have no message yet take messages in the order in which they started. */
byte waiting[2 * (K + 1)], waits[2];

inline match(l) {
  do
  :: length[l] > 0 && waits[l] > 0 ->
     got[waiting[l * (K + 1)]] = queue[l * (K + 1)];
     open_in--;
     i = 0;
     do
     :: i < K -> queue[l * (K + 1) + i] = queue[l * (K + 1) + i + 1]; waiting[l * (K + 1) + i] = waiting[l * (K + 1) + i + 1]; i++
     :: else -> break
     od;
     length[l]--; waits[l]--
  :: else -> break
  od;
  i = 0
}

#ifdef ANY_ORDER
#define earlier_in_lane(started, lane, k, j) false
#else
#define earlier_in_lane(started, lane, k, j) (j < k && lane[j] == lane[k] && !started[j])
#endif
#define free_to_start(started, lane, issued, k) (k <= issued && !started[k] && \
  !earlier_in_lane(started, lane, k, 1) && !earlier_in_lane(started, lane, k, 2))

inline start_send(k) {
  out_started[k] = true;
  queue[lane_out[k] * (K + 1) + length[lane_out[k]]] = k;
  length[lane_out[k]]++;
  match(lane_out[k])
}

inline start_recv(k) {
  in_started[k] = true;
  waiting[lane_in[k] * (K + 1) + waits[lane_in[k]]] = k;
  waits[lane_in[k]]++;
  match(lane_in[k])
}

proctype Sender() {
  byte i;
  do
  :: atomic { !failed && issued_out < K -> issued_out++ }
  :: atomic { !failed && free_to_start(out_started, lane_out, issued_out, 1) -> start_send(1) }
  :: atomic { !failed && free_to_start(out_started, lane_out, issued_out, 2) -> start_send(2) }
  :: atomic { !failed && free_to_start(out_started, lane_out, issued_out, 3) -> start_send(3) }
  :: atomic { failed -> break }
  :: atomic { out_started[1] && out_started[2] && out_started[3] -> break }
  od
}
proctype Receiver() {
  byte i;
  do
  :: atomic { !failed && issued_in < K -> issued_in++ }
  :: atomic { !failed && free_to_start(in_started, lane_in, issued_in, 1) -> start_recv(1) }
  :: atomic { !failed && free_to_start(in_started, lane_in, issued_in, 2) -> start_recv(2) }
  :: atomic { !failed && free_to_start(in_started, lane_in, issued_in, 3) -> start_recv(3) }
  :: atomic { failed -> break }
  :: atomic { open_in == 0 && checked -> break }   /* the next comparison also sees what is complete */
  od;
  assert(failed || (got[1] == 1 && got[2] == 2 && got[3] == 3));
  assert(failed || (sent[1] == posted[1] && sent[2] == posted[2] && sent[3] == posted[3]))
}
/* The control threads: compare what both have issued so far, again and again. */
#define differ(k) (k <= issued_out && k <= issued_in && sent[k] != posted[k])
#define complete_notes (issued_out == K && issued_in == K)
proctype Control() {
#if defined(WRONG) && !defined(NO_COMPARISON) && !defined(AS_A_SET)
  do
  :: atomic { differ(1) || differ(2) || differ(3) -> failed = true; break }
  :: atomic { complete_notes && !differ(1) && !differ(2) && !differ(3) -> checked = true; break }
  od
#elif defined(AS_A_SET)
  atomic { complete_notes ->
    if
    :: sent[1] + sent[2] + sent[3] != posted[1] + posted[2] + posted[3] -> failed = true
    :: else -> checked = true
    fi
  }
#else
  checked = true
#endif
}

inline choose(variable) {
  if
  :: variable = 0
  :: variable = 1
  fi
}

init {
  atomic {
    byte k = 1;
    do
    :: k <= K ->
       choose(sent[k]);
#ifdef RIGHT
       posted[k] = sent[k];
#else
       choose(posted[k]);
#endif
       lane_out[k] = sent[k];
#ifdef BY_ROOM
       if                                  /* inexact: the room of a receive may be larger than its message */
       :: lane_in[k] = posted[k]
       :: lane_in[k] = 1
       fi;
#else
       lane_in[k] = posted[k];
#endif
       got[k] = none;
       k++
    :: else -> break
    od;
    open_in = K;
    run Sender(); run Receiver(); run Control()
  }
}
