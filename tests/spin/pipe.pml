/* Frames between two ranks: cells with stamps, and a ring for what does not fit in a cell. (src/backends/shm/pipe.hpp)
 *
 * Modelled: a writer sends FRAMES frames; each has its number in its cell, and zero to two places of the ring, each of which
 * carries the frame's number too. A cell's stamp is the round in which it was written; it is stored after the cell and the
 * ring. The reader looks at the stamp of the next cell only, and counts what it has taken off. It need not publish the count of cells
 * after each (Pipe::pop_cell), but before it waits for the next. The writer keeps what it last saw of the counts, and looks again
 * only when it runs out of space.
 *   cell[], stamp[], ring[]   Cell, Cell::stamp, the ring of bytes     reads_cells, reads_bytes   PipeReads
 *   seen_cells, seen_bytes    Pipe::seen_read_, seen_bytes_read_
 * Shown: the reader takes every frame once, in order, whole, and nothing is overwritten before it was taken; both come to
 * their end.
 *
 * The chunks of a streamed exchange are the ring alone, with two places of fixed size (exchange_stream.cpp: `laid` says what is
 * written, `taken` what is read).
 *
 * Abstracted: bytes and padding become places; stamps and counts are wider in reality and do not wrap in any run. Release on a
 * stamp or a count and acquire at its reader make what was stored before visible, so memory is sequentially consistent here.
 *
 *   holds: cells_2_ring_2:    -DCELLS=2 -DSIZE=2 -DFRAMES=6
 *   holds: cells_2_ring_3:    -DCELLS=2 -DSIZE=3 -DFRAMES=6
 *   holds: cells_4_ring_3:    -DCELLS=4 -DSIZE=3 -DFRAMES=7
 *   fails: no_look_at_space:  -DCELLS=2 -DSIZE=2 -DFRAMES=6 -DNO_SPACE_CHECK
 *   fails: early_stamp:       -DCELLS=2 -DSIZE=2 -DFRAMES=6 -DEARLY_STAMP
 *   fails: early_release:     -DCELLS=2 -DSIZE=2 -DFRAMES=6 -DEARLY_RELEASE
 *   fails: never_published:   -DCELLS=2 -DSIZE=2 -DFRAMES=6 -DNEVER_PUBLISHED
 *   fails: stamp_without_lap: -DCELLS=2 -DSIZE=2 -DFRAMES=6 -DSAME_STAMP
 */
byte cell[CELLS], stamp[CELLS], ring[SIZE];
byte lengths[FRAMES + 1];   /* the payload's length is in the cell; beside it, it costs no state */
byte reads_cells, reads_bytes;

#ifdef SAME_STAMP
#define stamp_of(n) 1
#else
#define stamp_of(n) ((n) / CELLS + 1)
#endif
#define fits (written - seen_cells < CELLS && SIZE - (bytes_written - seen_bytes) >= length)

proctype Writer() {
  byte written, bytes_written, seen_cells, seen_bytes, length, i;
  do
  :: written == FRAMES -> break
  :: else ->
     if
     :: length = 0
     :: length = 1
     :: length = 2
     fi;
#ifndef NO_SPACE_CHECK
     do
     :: fits -> break
     :: else ->
        reads_cells != seen_cells || reads_bytes != seen_bytes;   /* so that a wait without end is found */
        seen_cells = reads_cells; seen_bytes = reads_bytes
     od;
#endif
#ifdef EARLY_STAMP
     stamp[written % CELLS] = stamp_of(written);
#endif
     cell[written % CELLS] = written + 1;
     lengths[written + 1] = length;
     i = 0;
     do
     :: i < length -> ring[(bytes_written + i) % SIZE] = written + 1; i++
     :: i == length -> break
     od;
     bytes_written = bytes_written + length;
     stamp[written % CELLS] = stamp_of(written);
     written++
  od
}

proctype Reader() {
  byte read, bytes_read, i;
  do
  :: read == FRAMES -> break
  :: else ->
     if
     :: stamp[read % CELLS] == stamp_of(read)
     :: else ->
#ifndef NEVER_PUBLISHED
        reads_cells = read;
#endif
        stamp[read % CELLS] == stamp_of(read)
     fi;
     assert(cell[read % CELLS] == read + 1);
#ifdef EARLY_RELEASE
     reads_bytes = bytes_read + lengths[read + 1];
#endif
     i = 0;
     do
     :: i < lengths[read + 1] -> assert(ring[(bytes_read + i) % SIZE] == read + 1); i++
     :: i == lengths[read + 1] -> break
     od;
     bytes_read = bytes_read + lengths[read + 1];
     lengths[read + 1] = 0;
     reads_bytes = bytes_read;
     read++;
     if
     :: reads_cells = read
     :: skip
     fi
  od
}

init {
  atomic { run Writer(); run Reader() }
}
