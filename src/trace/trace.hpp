// A Trace is a schedule as it happened: the operations of every rank of a job, in the order they were issued,
// with times. Readers of record files and importers make it; summaries, exports and reconcile read it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <medley/types.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::trace {

enum class State : std::uint8_t { issued, started, complete, failed };
std::string_view name(State state) noexcept;

/// What a source may not carry about an operation. Reconcile compares the fields that both sides know.
enum class Field : std::uint8_t { group, bytes, dtype, reduce, root, phase, async, order, rounding };
inline constexpr int field_count = 9;
std::string_view name(Field field) noexcept;
std::optional<Field> parse_field(std::string_view text) noexcept;

/// A set of fields.
class Fields {
 public:
  constexpr Fields() = default;
  constexpr Fields(std::initializer_list<Field> fields) {
    for (const Field field : fields) add(field);
  }
  constexpr void add(Field field) { bits_ = static_cast<std::uint16_t>(bits_ | bit(field)); }
  constexpr void remove(Field field) { bits_ = static_cast<std::uint16_t>(bits_ & ~bit(field)); }
  constexpr bool has(Field field) const { return (bits_ & bit(field)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Fields&) const = default;
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr unsigned bit(Field field) { return 1u << static_cast<unsigned>(field); }
  std::uint16_t bits_ = 0;
};

/// One operation on one rank. Times are nanoseconds from the start of the trace; those it has not reached are
/// -1.
struct Event {
  Op op = Op::all_reduce;
  DType dtype = DType::u8;
  ReduceOp reduce = ReduceOp::sum;
  State state = State::complete;
  bool async = false;
  bool on_device = false;   ///< it started and completed there, not when the host said so
  bool matched = true;      ///< its sequence number is one that all ranks of the group share
  std::uint32_t group = 0;  ///< of Trace::groups
  std::uint32_t scope = 0;  ///< of Trace::names, like backend and algorithm; 0: none
  std::uint32_t backend = 0;
  std::uint32_t algorithm = 0;
  std::uint64_t sequence = 0;  ///< on its group
  std::int64_t bytes = 0;      ///< the full tensor, whatever the source's convention was
  std::int64_t peer = -1;      ///< of a message: the other rank, of the world; of rooted collectives the root
  std::int64_t count = 1;      ///< operations that this stands for, where a log only has sums
  Fields unknown;              ///< what the source does not say; `rounding`: its sizes are rounded
  double issued = -1, started = -1, completed = -1;
  double exposed = 0;  ///< ns in which the program did nothing but wait for it
  /// Without the time in a stream behind other work of the device.
  double duration() const {
    const double begin = on_device ? started : issued;
    return completed >= 0 && begin >= 0 ? completed - begin : 0;
  }
};

/// A comm, by another tool's name a process group.
struct Group {
  std::string name;
  std::vector<int> ranks;  ///< of the world; empty where the source does not say
  int size = 0;            ///< 0: not known
};

/// How to come from a rank's own clock to that of the trace: t + offset + drift · t.
struct ClockShift {
  double offset = 0, drift = 0;
};

/// Where the events of one rank come from: a mapped record file, or memory.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual std::size_t size() const = 0;
  /// False for a place that holds no whole record.
  virtual bool read(std::size_t place, Event& event) const = 0;
};

/// One moment on three clocks, as the rank saw it; all zero where the source has no such thing.
struct StartTimes {
  std::uint64_t ticks = 0;
  std::int64_t monotonic_ns = 0, real_ns = 0;
  double ns_per_tick = 1;
};

struct RankTrace {
  int rank = 0;
  int context = 1;  ///< a process may make several contexts; each has its own events
  std::string host;
  std::int64_t pid = 0;
  std::string file;
  std::int64_t issued = 0;           ///< operations the rank issued; more than are kept, in a ring
  std::vector<std::string> remarks;  ///< "cut off after …"
  StartTimes start;
  ClockShift clock;
  /// Steps that the source marks itself (torch.profiler's): places from the first up to, not including, the second.
  std::vector<std::pair<std::size_t, std::size_t>> marked_steps;
  std::shared_ptr<EventSource> events;

  /// Calls visit(event) in order of issue, on the trace's clock.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    Event event;
    for (std::size_t i = 0; i < events->size(); ++i) {
      if (!events->read(i, event)) continue;
      for (double* time : {&event.issued, &event.started, &event.completed}) {
        if (*time >= 0) *time += clock.offset + clock.drift * *time;
      }
      event.exposed += clock.drift * event.exposed;
      visit(static_cast<const Event&>(event));
    }
  }
};

struct Trace {
  std::string source;  ///< the folder or file
  std::string format;  ///< "medley", "deepspeed comms logger", …
  int world = 0;
  std::vector<Group> groups;
  std::vector<std::string> names{""};
  std::vector<RankTrace> ranks;      ///< by rank
  std::vector<std::string> remarks;  ///< what a reader of figures must know
  bool timed = true;                 ///< false: a log without times
  bool waits_known = true;           ///< false: nobody wrote down when the program waited
  double clock_error = 0;            ///< ns that aligned clocks may be apart

  std::uint32_t name(std::string_view text);
  /// The number of the group, made when it is new.
  std::uint32_t group(const Group& group);
  const RankTrace& rank(int rank) const;  ///< throws Error(invalid) when it is not there

 private:
  std::map<std::string, std::uint32_t, std::less<>> name_numbers_;
  std::map<std::pair<std::string, std::vector<int>>, std::uint32_t> group_numbers_;
};

/// Events in memory, for importers.
class EventList final : public EventSource {
 public:
  std::vector<Event> events;
  std::size_t size() const override { return events.size(); }
  bool read(std::size_t place, Event& event) const override {
    event = events[place];
    return true;
  }
};

/// Reads a folder of record files, one of them, or what another tool wrote; tells them apart by their
/// content.
Trace open_trace(const std::string& path);

/// "forward/layer3.attention" is phase and module; a scope without a phase is a module.
struct ScopeParts {
  std::string_view phase, module;
};
ScopeParts parts_of_scope(std::string_view scope) noexcept;
/// Operations under this scope stand between two steps and belong to none.
inline constexpr std::string_view step_scope = "step";

}  // namespace medley::trace
