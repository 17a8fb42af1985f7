/* The all-gather of control threads: strings go up a binomial tree and back down. (src/control/gathering.cpp)
 *
 * Modelled: N ranks gather R times under one name. A rank's program calls at any time; its control thread receives messages
 * before the call as well.
 *   collected      Part::collected, a bit for each rank      called      Part::caller is set
 *   sent           Part::sent                                turn        number of gatherings completed here
 * Shown: a rank that completes has all strings of its own gathering; messages that arrive before a rank has called are not lost;
 * gatherings under one name never mix (a parent in the tree completes before its children, so no child can be ahead of it); no
 * rank waits forever; and no message is left over. Messages of different ranks overtake each other, as on different links.
 *
 *   holds: two_ranks:         -DN=2 -DR=3
 *   holds: three_ranks:       -DN=3 -DR=2
 *   holds: five_ranks:        -DN=5 -DR=2
 *   fails: early_dropped:     -DN=3 -DR=1 -DEARLY_DROPPED
 *   fails: up_without_own:    -DN=4 -DR=1 -DUP_WITHOUT_OWN
 *   fails: down_from_root:    -DN=4 -DR=2 -DDOWN_FROM_ROOT
 */
#define ALL ((1 << N) - 1)
#define parent(i) ((i) & ((i) - 1))
#define lowest(i) ((i) & -(i))
/* the ranks of the subtree at i, itself included */
#define below(i) (((i) == 0 -> ALL : ((1 << lowest(i)) - 1) << (i)) & ALL)

mtype = {up, down};
chan in[N] = [2 * N] of {mtype, byte /* ranks */, byte /* turn */};

inline tell_down(i) {
  c = 1;
  do
  :: c < N ->
#ifdef DOWN_FROM_ROOT
     if
     :: i == 0 -> in[c] ! down, ALL, turn
     :: else
     fi;
#else
     if
     :: parent(c) == i -> in[c] ! down, ALL, turn
     :: else
     fi;
#endif
     c++
  :: else -> break
  od;
  called = 0; sent = 0; collected = 0; turn++
}

inline advance(i) {
#ifdef UP_WITHOUT_OWN
  if
  :: i != 0 && !sent && (collected | (1 << i)) == below(i) -> sent = 1; in[parent(i)] ! up, collected, turn
#else
  if
  :: i != 0 && called && !sent && collected == below(i) -> sent = 1; in[parent(i)] ! up, collected, turn; collected = 0
#endif
  :: i == 0 && called && collected == ALL -> tell_down(0)
  :: else
  fi
}

proctype rank(byte i) {
  byte collected, called, sent, turn, ranks, theirs, c;
  do
  :: atomic { turn < R && !called -> called = 1; collected = collected | (1 << i); advance(i) }
  :: atomic { in[i] ?? up(ranks, theirs) ->
       assert(theirs == turn);          /* of another gathering of the same name */
       assert((collected & ranks) == 0);
#ifdef EARLY_DROPPED
       if
       :: called -> collected = collected | ranks
       :: else
       fi;
#else
       collected = collected | ranks;
#endif
       advance(i) }
  :: atomic { in[i] ?? down(ranks, theirs) ->
       assert(called && theirs == turn && ranks == ALL);
       tell_down(i) }
  :: atomic { turn == R && empty(in[i]) -> break }
  od
}

init {
  byte r = 0;
  atomic {
    do
    :: r < N -> run rank(r); r++
    :: else -> break
    od
  }
}
