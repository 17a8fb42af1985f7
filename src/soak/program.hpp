// A random program as plain data: what happens (steps, in an order that is right for all ranks) and how each
// rank goes about it (streams of actions). Made by generate(), judged by the oracle, run by run_program(),
// cut down by the shrinker.
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
  std::int64_t at = 0;                  ///< where the buffer begins, in bytes of the rank's memory
  std::int64_t count = 0;               ///< elements of the buffer
  std::vector<std::int64_t> counts{};   ///< of each rank's part, for the v-collectives
  std::vector<std::int64_t> offsets{};  ///< in elements of the buffer
};
struct Share {
  Side in, out;
};

/// One message; ranks are those of the comm.
struct Packet {
  int from, to, tag;
  std::int64_t count, from_at, to_at;
  std::int64_t room;  ///< elements the receiver posts, `count` or more
  bool any_source = false;
};

enum class Kind : std::uint8_t {
  collective,
  messages,    ///< issued by each rank as one send, recv, sendrecv or batch
  any_source,  ///< all packets go to one rank, which receives them as they come and sorts them by sender
  split,       ///< makes comms; so do the next two
  subset,
  dup,
  drop,   ///< lets go of a comm
  touch,  ///< a rank looks at a piece of its memory and writes something new there
};

struct Step {
  Kind kind{};
  int comm = 0;
  int phase = 0, thread = 0;
  bool removed = false;   ///< by the shrinker; numbers stay what they are
  std::string backend{};  ///< empty: the comm's own choice
  std::string algorithm{};
  bool deterministic = false;
  Op op{};
  DType dtype{};
  ReduceOp reduce{};
  int root = 0;
  std::vector<Share> shares{};  ///< of a collective, by rank of the comm
  std::vector<Packet> packets{};
  std::vector<int> made{};            ///< comms, by color
  std::vector<int> colors{}, keys{};  ///< by rank of the parent
  int rank = 0;                       ///< of a touch: in the world
  std::int64_t at = 0, bytes = 0;
};

struct CommPlan {
  std::string name;
  std::vector<int> members;  ///< ranks of the world
  int made_by = -1;          ///< the step; -1 for the world
  std::string rules{};       ///< that it is made with
};

enum class Act : std::uint8_t {
  issue,
  finish,
  test,
  delay,
  fork,  ///< a child tries to use the rank's comms
};
/// How a rank waits: Work::wait, the same with a deadline or with the longest there is, or calling test until it is true.
enum class Wait : std::uint8_t { wait, deadline, endless, test };

struct Action {
  Act act{};
  int step = 0;
  bool async = false;    ///< of issue
  bool dropped = false;  ///< of issue: the Work is thrown away; a later step that is waited for covers it
  Wait wait{};           ///< of finish
  int microseconds = 0;  ///< of delay
  int max_wait = 0;      ///< of a blocking issue, in microseconds: it may come back before it is complete, and is then waited for
};
using Stream = std::vector<Action>;

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::int64_t memory = 0;  ///< bytes of each rank
  bool progress_thread = false;
  bool one_order = false;   ///< all ranks issue their steps in the same order
  std::vector<DType> palette{};   ///< what the slabs of memory hold at first
  std::vector<CommPlan> comms{};  ///< the first is the world
  std::vector<Step> steps{};
  std::vector<int> threads{};  ///< in each phase; they all come to its end before the next begins
  std::vector<std::vector<std::vector<Stream>>> streams{};  ///< by rank, phase, thread
};

/// The rank's number in the comm, or -1.
int rank_in(const CommPlan& comm, int world_rank);
bool is_comm_maker(Kind kind);
bool takes_part(const Program& program, const Step& step, int world_rank);
/// What the step touches on a rank; `packet` names one of its messages, -1 all of them.
std::vector<Interval> accesses(const Program& program, const Step& step, int world_rank, int packet = -1);
/// Whether a rank receives in this step as messages come, which it does at once and not in the background.
bool collects(const Program& program, const Step& step, int world_rank);

/// The first content of a rank's memory: slabs of the palette's types with values that reductions can be
/// exact on.
std::vector<std::byte> initial_memory(const Program& program, int world_rank);
/// What a touch writes.
void write_touch(const Program& program, int step, std::byte* at);

/// The program as a page of pseudo-code.
std::string to_text(const Program& program);

}  // namespace medley::soak
