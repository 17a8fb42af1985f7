/* The ring of bytes between two ranks, with frames of different lengths that wrap. (src/backends/shm/pipe.hpp)
 * The chunks of a streamed exchange are the same protocol with places of fixed size (exchange_stream.cpp:
 * `laid` is written, `taken` is read).
 *
 * Modelled: a writer sends FRAMES frames of one to three cells, cell by cell, each cell carrying the frame's number;
 * a reader removes them, cell by cell. written and read are PipeEnds; SIZE is the ring's size in cells.
 * Shown: every cell the reader takes belongs to the expected frame (in order, nothing torn, nothing overwritten before
 * it was read), the ring never holds more than its size, and both finish.
 *
 * Abstracted: bytes and padding become cells; the counters are 64-bit in reality and do not wrap in any run. Release
 * on a counter and acquire at its reader make the cells before it visible, so memory is sequentially consistent here.
 *
 *   holds: ring_of_4:       -DSIZE=4 -DFRAMES=6
 *   holds: ring_of_5:       -DSIZE=5 -DFRAMES=6
 *   fails: no_look_at_room: -DSIZE=4 -DFRAMES=6 -DNO_ROOM_CHECK
 *   fails: early_counter:   -DSIZE=4 -DFRAMES=6 -DEARLY_COUNTER
 *   fails: early_release:   -DSIZE=4 -DFRAMES=6 -DEARLY_RELEASE
 */
byte cell[SIZE];
byte lengths[FRAMES + 1];   /* really in a frame's header; outside the ring it adds no states */
byte written;
byte read;

proctype Writer() {
  byte frame = 1, length, i;
  do
  :: frame > FRAMES -> break
  :: else ->
     if
     :: length = 1
     :: length = 2
     :: length = 3
     fi;
#ifndef NO_ROOM_CHECK
     SIZE - (written - read) >= length;
#endif
     lengths[frame] = length;
#ifdef EARLY_COUNTER
     written = written + length;
     i = 0;
     do
     :: i < length -> cell[(written - length + i) % SIZE] = frame; i++
     :: i == length -> break
     od;
#else
     i = 0;
     do
     :: i < length -> cell[(written + i) % SIZE] = frame; i++
     :: i == length -> break
     od;
     written = written + length;
     assert(written - read <= SIZE);
#endif
     frame++
  od
}

proctype Reader() {
  byte frame = 1, i, at;
  do
  :: frame > FRAMES -> break
  :: else ->
     written != read;
     at = read;
#ifdef EARLY_RELEASE
     read = read + lengths[frame];
#endif
     i = 0;
     do
     :: i < lengths[frame] -> assert(cell[(at + i) % SIZE] == frame); i++
     :: i == lengths[frame] -> break
     od;
#ifndef EARLY_RELEASE
     read = read + lengths[frame];
#endif
     lengths[frame] = 0;
     frame++
  od
}

init {
  atomic { run Writer(); run Reader() }
}
