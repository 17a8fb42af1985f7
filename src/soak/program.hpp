// A random program as plain data: its steps, in an order that is valid for all ranks, and how each rank runs
// them (streams of actions). generate() makes it, the oracle checks it, run_program() runs it, the shrinker
// reduces it.
#pragma once

#include <cstdint>
#include <medley/types.hpp>
#include <string>
#include <vector>

namespace medley::soak {

/// Bytes of a rank's memory that a step reads or writes.
struct Interval {
  std::int64_t begin, end;
  bool write;
};
bool conflict(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// One side of a collective on one rank.
struct Side {
  std::int64_t at = 0;                  ///< byte offset of the buffer in the rank's memory
  std::int64_t count = 0;               ///< elements of the buffer
  std::vector<std::int64_t> counts{};   ///< of each rank's part, for v-collectives
  std::vector<std::int64_t> offsets{};  ///< in elements of the buffer
};
struct Share {
  Side in, out;
};

/// One message; ranks are those of the comm.
struct Packet {
  int from, to, tag;
  std::int64_t count, from_at, to_at;
  std::int64_t room;  ///< elements the receiver posts: `count` or more
  bool any_source = false;
};

enum class Kind : std::uint8_t {
  collective,
  messages,    ///< issued by each rank as one send, recv, sendrecv or batch
  any_source,  ///< all packets go to one rank, which receives from any source and sorts them by sender
  split,       ///< makes comms, as do the next two
  subset,
  dup,
  drop,   ///< releases a comm
  touch,  ///< a rank reads a part of its memory and writes new values there
};

struct Step {
  Kind kind{};
  int comm = 0;
  int phase = 0, thread = 0;
  bool removed = false;   ///< by the shrinker; step numbers do not change
  std::string backend{};  ///< empty: the comm chooses
  std::string algorithm{};
  bool deterministic = false;
  Op op{};
  DType dtype{};
  ReduceOp reduce{};
  int root = 0;
  std::vector<Share> shares{};  ///< of a collective, by rank in the comm
  /// An all_reduce or a broadcast: a list of this many tensors, which are parts of its buffers; 0: one tensor.
  int tensors = 0;
  bool in_scope = false;  ///< the tensors are issued one by one, in a fuse scope
  std::vector<Packet> packets{};
  std::vector<int> made{};            ///< comms, by color
  std::vector<int> colors{}, keys{};  ///< by rank of the parent
  int rank = 0;                       ///< for touch: a world rank
  std::int64_t at = 0, bytes = 0;
};

struct CommPlan {
  std::string name;
  std::vector<int> members;  ///< ranks of the world
  int made_by = -1;          ///< the step that made it; -1 for the world
  std::string rules{};       ///< the routing rules it is made with
  bool fuse = false;         ///< it fuses small async collectives without being asked to
  bool exact = false;        ///< its messages have exact sizes, which its rules may route
};

enum class Act : std::uint8_t {
  issue,
  finish,
  test,
  delay,
  fork,  ///< a forked child tries to use the rank's comms
};
/// How a rank waits: Work::wait, wait with a deadline, wait with the longest possible deadline, or polling
/// test.
enum class Wait : std::uint8_t { wait, deadline, endless, test };

struct Action {
  Act act{};
  int step = 0;
  bool async = false;    ///< for issue
  bool dropped = false;  ///< for issue: the Work is dropped; a later step that is waited for covers it
  Wait wait{};           ///< for finish
  int microseconds = 0;  ///< for delay
  /// For a blocking issue, in microseconds: it may return before completion and is then waited for
  int max_wait = 0;
};
using Stream = std::vector<Action>;

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::int64_t memory = 0;  ///< bytes per rank
  bool progress_thread = false;
  bool one_order = false;         ///< all ranks issue their steps in the same order
  std::vector<DType> palette{};   ///< the initial dtypes of the slabs of memory
  std::vector<CommPlan> comms{};  ///< the first is the world
  std::vector<Step> steps{};
  std::vector<int> threads{};  ///< per phase; all threads finish a phase before the next begins
  std::vector<std::vector<std::vector<Stream>>> streams{};  ///< by rank, phase, thread

  const CommPlan& comm(int number) const { return comms[static_cast<std::size_t>(number)]; }
  CommPlan& comm(int number) { return comms[static_cast<std::size_t>(number)]; }
  const Step& step(int number) const { return steps[static_cast<std::size_t>(number)]; }
  Step& step(int number) { return steps[static_cast<std::size_t>(number)]; }
};

/// The rank's number in the comm, or -1.
int rank_in(const CommPlan& comm, int world_rank);
bool is_comm_maker(Kind kind);
bool takes_part(const Program& program, const Step& step, int world_rank);
/// The memory the step touches on a rank; `packet` selects one of its messages, -1 all of them.
std::vector<Interval> accesses(const Program& program, const Step& step, int world_rank, int packet = -1);
/// The same by operation: the sends and receives of a step are operations of their own, and so are the tensors of a
/// list or a fuse scope.
std::vector<std::vector<Interval>> operations(const Program& program, const Step& step, int world_rank);
/// One of the tensors that a side is divided into.
Side tensor_of(const Side& side, DType dtype, int tensor, int tensors);
/// Whether a collective is compressed by a codec that rounds.
bool rounds(const Step& step);
/// Whether a rank works on memory of its own first, synchronously: a receive from any source, or a collective that
/// rounds.
bool collects(const Program& program, const Step& step, int world_rank);

/// The initial content of a rank's memory: slabs of the palette's types with values that can be reduced
/// exactly.
std::vector<std::byte> initial_memory(const Program& program, int world_rank);
/// Writes the new values of a touch.
void write_touch(const Program& program, int step, std::byte* at);

/// The program as pseudo-code.
std::string to_text(const Program& program);

}  // namespace medley::soak
