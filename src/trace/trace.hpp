// A Trace is a schedule as it ran: the operations of every rank of a job, in order of issue, with times. Made
// by the readers of record files and the importers; read by summaries, exports and reconcile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <medley/route_decision.hpp>
#include <medley/types.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::trace {

enum class State : std::uint8_t { issued, started, complete, failed };
std::string_view name(State state) noexcept;

/// Facts about an operation that a source may lack. Reconcile compares the fields that both sides have.
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

/// One operation on one rank. Times are nanoseconds from the start of the trace; -1 for states not reached.
struct Event {
  Op op = Op::all_reduce;
  DType dtype = DType::u8;
  ReduceOp reduce = ReduceOp::sum;
  State state = State::complete;
  bool async = false;
  bool awaited = true;      ///< of one that is not complete: the program is in the call, or waits for it
  bool on_device = false;   ///< its times are the device's, not the host's
  bool call_only = false;   ///< its times are those of the host's call; when the transfer ended is not known
  bool matched = true;      ///< all ranks of the group share its sequence number
  std::uint32_t group = 0;  ///< index in Trace::groups
  std::uint32_t scope = 0;  ///< index in Trace::names, like backend and algorithm; 0: none
  std::uint32_t backend = 0;
  std::uint32_t algorithm = 0;
  std::uint64_t sequence = 0;  ///< in its group
  std::int64_t bytes = 0;      ///< the full tensor, whatever the source's convention
  std::int64_t peer = -1;      ///< of a message: the other world rank; of a rooted collective: the root
  std::int64_t count = 1;      ///< number of operations this represents, where a log only has sums
  Fields unknown;              ///< fields the source lacks; `rounding`: its sizes are rounded
  double issued = -1, started = -1, completed = -1;
  double exposed = 0;         ///< ns in which the program only waited for it
  bool exposed_known = true;  ///< false: the program may have waited in a way that was not recorded; `exposed` is 0
  /// Of the kernel or the transfer: without the time that it was queued behind other work, where the source knows it.
  double begin() const { return started >= 0 ? started : issued; }
  double duration() const { return completed >= 0 && begin() >= 0 ? std::max(0.0, completed - begin()) : 0; }
};

/// A comm; other tools call it a process group.
struct Group {
  std::string name;
  std::vector<int> ranks;  ///< world ranks; empty when the source does not say
  int size = 0;            ///< 0: not known
};

/// Converts a rank's clock to the trace's: t + offset + drift · t.
struct ClockShift {
  double offset = 0, drift = 0;
};

/// The events of one rank: a mapped record file, or memory.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual std::size_t size() const = 0;
  /// False when there is no whole record at this index.
  virtual bool read(std::size_t place, Event& event) const = 0;
};

/// One moment on three clocks, as the rank read them; all zero when the source has none.
struct StartTimes {
  std::uint64_t ticks = 0;
  std::int64_t monotonic_ns = 0, real_ns = 0;
  double ns_per_tick = 1;
};

struct RankTrace {
  int rank = 0;
  int context = 1;  ///< a process may have several contexts, each with its own events
  std::string host;
  std::int64_t pid = 0;
  std::string file;
  std::int64_t issued = 0;           ///< operations the rank issued; a ring may keep fewer
  std::vector<std::string> remarks;  ///< "cut off after …"
  StartTimes start;
  ClockShift clock;
  /// Steps that the source marks itself (torch.profiler's): from the first index up to, but not including,
  /// the second.
  std::vector<std::pair<std::size_t, std::size_t>> marked_steps;
  std::shared_ptr<EventSource> events;

  /// As EventSource::read(), on the trace's clock.
  bool read(std::size_t place, Event& event) const {
    if (!events->read(place, event)) return false;
    for (double* time : {&event.issued, &event.started, &event.completed}) {
      if (*time >= 0) *time += clock.offset + clock.drift * *time;
    }
    event.exposed += clock.drift * event.exposed;
    return true;
  }
  /// Calls visit(event) in order of issue, on the trace's clock.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    Event event;
    for (std::size_t i = 0; i < events->size(); ++i) {
      if (read(i, event)) visit(static_cast<const Event&>(event));
    }
  }
};

struct Trace {
  std::string source;  ///< the folder or file
  std::string format;  ///< "medley", "deepspeed comms logger", …
  int world = 0;
  std::vector<Group> groups;
  std::vector<std::string> names{""};
  std::vector<RankTrace> ranks;          ///< by rank
  std::vector<RouteDecision> decisions;  ///< about routes in the running job, each once, in order of each comm
  std::vector<std::string> remarks;      ///< remarks that a reader of the figures must know
  bool timed = true;                     ///< false: a log without times
  bool waits_known = true;               ///< false: the source never records when the program waited
  bool starts_exact = true;              ///< false: the source polls when operations start, too coarse to compare ranks
  double clock_error = 0;                ///< largest error of the aligned clocks, ns

  std::uint32_t name(std::string_view text);
  /// The group's number; adds a new group.
  std::uint32_t group(const Group& group);
  const RankTrace& rank(int rank) const;  ///< throws Error(invalid) when there is no such rank

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

/// Reads a folder of record files, a single one, or another tool's file; detects the format by content.
Trace open_trace(const std::string& path);

/// "forward/layer3.attention" is phase and module; a scope without a phase is a module.
struct ScopeParts {
  std::string_view phase, module;
};
ScopeParts parts_of_scope(std::string_view scope) noexcept;
/// Operations under this scope separate two steps and belong to none.
inline constexpr std::string_view step_scope = "step";

}  // namespace medley::trace
