/* The lock of the engine and of MPI (include/medley/sdk/biased_lock.hpp): a thread that owns its bias takes it by a store and a load, without a barrier. Another
   thread revokes the bias and then takes a spinlock; so does the owner from then on. At most one thread may be inside.

   The owner's stores reach memory later, in order (its store buffer). A revoker's membarrier() empties that buffer; an atomic exchange
   of the owner does too.

   holds: two_revokers:
   fails: without_membarrier: -DNO_BARRIER
   fails: a_revoker_that_does_not_wait: -DNO_WAIT
   fails: a_second_revoker_that_trusts_the_first: -DTRUST_FIRST
*/
bit inside = 0, revoking = 0, revoked = 0;
byte holder = 0;          /* of the spinlock; 0: nobody */
byte in_section = 0;
chan buffer = [2] of { bit };   /* the owner's stores to `inside` that have not reached memory */

inline drain() {
  bit stored;
  do
  :: buffer ? stored -> inside = stored
  :: empty(buffer) -> break
  od
}

inline section() {
  in_section++;
  assert(in_section == 1);
  in_section--
}

active proctype store_buffer() {
  bit stored;
end:
  do
  :: atomic { buffer ? stored -> inside = stored }
  od
}

active proctype owner() {
  byte round = 0;
  do
  :: round < 2 ->
    round++;
    buffer ! 1;
    if
    :: revoking == 0 ->
      section();
      buffer ! 0
    :: revoking == 1 ->
      buffer ! 0;
      atomic { holder == 0 -> drain(); holder = 1 }
      section();
      holder = 0
    fi
  :: else -> break
  od
}

active [2] proctype other() {
  if
#ifdef TRUST_FIRST
  :: revoking == 1 -> skip      /* the other one is at it: no need to wait */
  :: revoking == 0 ->
#else
  :: revoked == 1 -> skip
  :: revoked == 0 ->
#endif
    revoking = 1;
#ifndef NO_BARRIER
    d_step { drain() }
#endif
#ifndef NO_WAIT
    inside == 0;
#endif
    revoked = 1
  fi;
  atomic { holder == 0 -> holder = 2 + _pid }
  section();
  holder = 0
}
