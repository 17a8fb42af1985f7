/* Messages between two ranks: eager, and rendezvous with direct reads (RTS, FIN) or with data frames (RTS, CTS, data).
 * The frames offer, accept and received are RTS, CTS and FIN.
 * (src/backends/shm/tag_matcher.cpp, message_transfers.cpp)
 *
 * Modelled: both ranks issue two sends to and two receives from the other, without waiting, in any order; each
 * message is small (eager) or large (rendezvous). A pipe holds ROOM frames (pipe.pml shows that it is a queue). Every frame may
 * arrive before its receive is posted (Mail::unexpected_). A rank polls its pipe only while it has pending
 * operations (Mail::idle), and leaves when it has none.
 *   sending[]     SendTransfer::State     memory[]   a large message's memory; the sender's own after completion
 *   receiving[]   RecvTransfer::State     parts      data frames of one message, without direct reads (STREAMED)
 * Shown: the n-th receive gets the n-th message, whole and in order; a sender's memory is not released before the
 * receiver has read it; no rank waits forever, however small the pipes are.
 *
 * Abstracted: one tag and one peer (matching is a search in a list); lengths, receives that are too small.
 *
 *   holds: direct_room_1:          -DROOM=1
 *   holds: direct_room_2:          -DROOM=2
 *   holds: streamed_room_1:        -DROOM=1 -DSTREAMED
 *   holds: streamed_room_2:        -DROOM=2 -DSTREAMED
 *   fails: complete_when_offered:  -DROOM=1 -DCOMPLETE_WHEN_OFFERED
 *   fails: answer_dropped_if_full: -DROOM=1 -DANSWER_DROPPED
 *   fails: senders_take_in_nothing: -DROOM=1 -DSENDERS_TAKE_IN_NOTHING
 *   fails: small_overtakes_large:  -DROOM=1 -DOVERTAKE
 *   fails: accept_is_received:     -DROOM=1 -DSTREAMED -DACCEPT_IS_RECEIVED
 */
mtype = { eager, offer, accept, data, received };
#define M 2
#define PARTS 2
/* of sends */
#define queued 1
#define offered 2
#define accepted 3
/* of receives */
#define posted 1
#define reading 2
#define answering 3
#define streaming 4
/* of both */
#define complete 5

#define other (1 - me)
#define mine(n) (me * (M + 1) + (n))
#define theirs(n) (other * (M + 1) + (n))
#define has_room (len(pipe[me]) < ROOM)

chan pipe[2] = [ROOM] of { mtype, byte, byte };   /* from each rank to the other: kind, message, part */
byte memory[2 * (M + 1)];

inline match(n, is_offer) {
  if
  :: is_offer ->
#ifdef STREAMED
     receiving[n] = answering
#else
     receiving[n] = reading
#endif
  :: else -> receiving[n] = complete; finished++
  fi
}

inline sent(n) {
  sending[n] = complete; finished++;
  memory[mine(n)] = 0   /* returned to the caller */
}

inline take_in() {
  pipe[other] ? kind, id, part ->
  if
  :: kind == eager || kind == offer ->
     arrivals++;
     assert(id == arrivals);
     if
     :: arrivals <= receives -> match(arrivals, (kind == offer))
     :: else -> unexpected[arrivals] = 1 + (kind == offer)
     fi
  :: kind == data ->
     assert(receiving[id] == streaming && part == taken[id]);
     taken[id]++;
     if
     :: taken[id] == PARTS -> receiving[id] = complete; finished++
     :: else
     fi
  :: kind == received -> sent(id)
  :: kind == accept ->
     sending[id] = accepted;
#ifdef ACCEPT_IS_RECEIVED
     memory[mine(id)] = 0
#endif
  fi;
  kind = 0; id = 0; part = 0
}

/* A pending large message: whether this rank can progress it, and how. */
#ifdef ANSWER_DROPPED
#define can_answer(n) (receiving[n] == answering)
#else
#define can_answer(n) (receiving[n] == answering && has_room)
#endif
#define can_move(n) ((sending[n] == accepted && has_room) || receiving[n] == reading || can_answer(n))

inline move(n) {
  if
  :: sending[n] == accepted && has_room ->
     assert(memory[mine(n)] == n);
     pipe[me] ! data, n, given[n];
     given[n]++;
     if
     :: given[n] == PARTS -> sent(n)
     :: else
     fi
  :: receiving[n] == reading -> assert(memory[theirs(n)] == n); receiving[n] = answering
  :: can_answer(n) ->
#ifdef STREAMED
     pipe[me] ! accept, n, 0;
     receiving[n] = streaming
#else
     if
     :: has_room -> pipe[me] ! received, n, 0
     :: else   /* only where can_answer ignores free space */
     fi;
     receiving[n] = complete; finished++
#endif
  fi
}

#define something_pending (finished < sends + receives)

proctype Rank(byte me) {
  byte sending[M + 1], receiving[M + 1], unexpected[M + 1], taken[M + 1], given[M + 1];
  byte sends, receives, left, arrivals, finished, id, part, n;
  mtype kind;
  do
  :: atomic { sends < M -> sends++; sending[sends] = queued; memory[mine(sends)] = sends }
  :: atomic { receives < M ->
       receives++;
       receiving[receives] = posted;
       if
       :: unexpected[receives] != 0 -> match(receives, (unexpected[receives] == 2)); unexpected[receives] = 0
       :: else
       fi
     }
  :: atomic { left < sends && has_room ->      /* eager: sends a whole message */
       n = left + 1;
#ifdef OVERTAKE
       if
       :: n < sends && sending[n + 1] == queued -> n = n + 1
       :: else
       fi;
#endif
       pipe[me] ! eager, n, 0;
       sent(n); n = 0;
       left++
     }
  :: atomic { left < sends && has_room ->      /* rendezvous: sends an RTS (offer) */
       left++;
       pipe[me] ! offer, left, 0;
#ifdef COMPLETE_WHEN_OFFERED
       memory[mine(left)] = 0;
#endif
       sending[left] = offered
     }
  :: atomic { can_move(1) -> move(1) }
  :: atomic { can_move(2) -> move(2) }
#ifdef SENDERS_TAKE_IN_NOTHING
  :: atomic { arrivals < receives && nempty(pipe[other]) -> take_in() }
#else
  :: atomic { something_pending && nempty(pipe[other]) -> take_in() }
#endif
  :: atomic { sends == M && receives == M && !something_pending -> break }
  od
}

init {
  atomic { run Rank(0); run Rank(1) }
}
