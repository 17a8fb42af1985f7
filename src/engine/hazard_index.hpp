// Which pending operations touch which memory: tells the scheduler what a new operation must wait for.
//
// The memory that pending operations touch is cut into segments, so that each operation covers whole ones. A segment
// knows its last writer and the readers since. A new operation waits for these alone, since the last writer itself
// waited for everything before it. So the cost of an operation depends on how many segments it covers, not on how many
// operations are pending.
//
// While they are few and none conflicts, such as the messages of a pipeline, a short list of intervals suffices. A
// fused message of many tensors stays by itself: its ranges are sorted, so a look-up is a binary search, and adding it
// costs next to nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/operation.hpp"

namespace medley::core {

class MEDLEY_API HazardIndex {
 public:
  /// Adds an operation, later than all present, and calls `visit` once for each operation that it conflicts with and
  /// must follow directly. Two conflict if one of them writes what both touch.
  template <class Visit>
  void add(Operation& operation, Visit&& visit) {
    for (Operation* bulk : bulks_) {
      if (conflicts_with_bulk(*bulk, operation)) report(bulk, operation, visit);
    }
    if (operation.accesses.sorted() && segments_.empty() && bulks_.size() < most_bulks)
      return add_bulk(operation, visit);
    if (segments_.empty() && add_to_few(operation)) return;
    add_to_segments(operation, visit);
  }
  /// Adds an operation that was found to conflict with none.
  void add_without_conflict(Operation& operation) {
    if (!segments_.empty() || few_count_ + operation.accesses.size() > few_.size()) [[unlikely]]
      return add(operation, [](Operation&) {});
    append_to_few(operation);
  }
  /// The same for the only range of a message.
  [[gnu::always_inline]] void add_without_conflict(Operation& operation, const Access& access) {
    if (!segments_.empty() || few_count_ == few_.size()) [[unlikely]]
      return add(operation, [](Operation&) {});
    append_to_few(operation, access);
  }
  /// Whether a pending operation conflicts with this access.
  [[gnu::always_inline]] bool conflicts(const Access& access) const {
    if (bulks_.empty() && ((few_count_ == 0 && segments_.empty()) || (segments_.empty() && outside_hull(access))))
        [[likely]]
      return false;
    const Access copy = access;  // so that the caller's can stay in registers
    return conflicts_inside(copy);
  }
  /// Removes a complete operation. One that fails before it has started hides the operations it waited for: rebuild
  /// then.
  void remove(Operation& operation) {
    const std::size_t at = operation.few_at;  // of another, if it is not in the list
    if (at < few_count_ && few_[at].operation == &operation && operation.accesses.size() == 1)
      return remove_from_few(at);
    remove_any(operation);
  }
  void clear();
  bool empty() const { return few_count_ == 0 && segments_.empty() && bulks_.empty(); }
  /// The number of segments.
  std::size_t size() const { return segments_.size(); }

 private:
  /// An entry without an operation belongs to a complete one.
  struct Reader {
    std::uint64_t order;
    Operation* operation;
  };
  struct Segment {
    const std::byte* end = nullptr;
    Operation* writer = nullptr;
    std::vector<Reader> readers{};  ///< since the last write, in order of issue
    std::size_t live_readers = 0;   ///< readers that still have an operation

    void add_reader(Operation& operation);
    void remove_reader(const Operation& operation);
    bool unused() const { return !writer && live_readers == 0; }
  };
  struct FewEntry {
    Access access;
    Operation* operation;
  };
  using Segments = std::map<const std::byte*, Segment>;  ///< by first byte; they do not overlap

  template <class Visit>
  static void report(Operation* earlier, Operation& operation, Visit&& visit) {
    if (!earlier || earlier == &operation || earlier->last_dependent == operation.order) return;
    earlier->last_dependent = operation.order;
    visit(*earlier);
  }
  /// One that conflicts with a bulk is made to follow it, also where it follows another that has come between:
  /// harmless, for that one follows the bulk too.
  template <class Visit>
  void add_bulk(Operation& operation, Visit&& visit) {
    for (std::size_t i = 0; i < few_count_; ++i) {
      if (operation.accesses.conflict_in_order(few_[i].access)) report(few_[i].operation, operation, visit);
    }
    bulks_.push_back(&operation);
  }
  static bool conflicts_with_bulk(const Operation& bulk, const Operation& operation);
  bool add_to_few(Operation& operation);
  void append_to_few(Operation& operation) {
    for (const Access& access : operation.accesses) append_to_few(operation, access);
  }
  [[gnu::always_inline]] void append_to_few(Operation& operation, const Access& access) {
    const bool first = few_count_ == 0;
    if (first || access.begin < hull_begin_) hull_begin_ = access.begin;
    if (first || access.end > hull_end_) hull_end_ = access.end;
    operation.few_at = static_cast<std::uint32_t>(few_count_);
    few_[few_count_++] = {access, &operation};
  }
  /// The last entry takes its place.
  void remove_from_few(std::size_t at) {
    few_[at] = few_[--few_count_];
    if (at < few_count_) few_[at].operation->few_at = static_cast<std::uint32_t>(at);
  }
  bool outside_hull(const Access& access) const { return access.end <= hull_begin_ || access.begin >= hull_end_; }
  bool conflicts_inside(const Access& access) const;
  template <class Visit>
  void add_to_segments(Operation& operation, Visit&& visit) {
    for (const Access& access : operation.accesses) {
      for (auto at = cover(access.begin, access.end); at != segments_.end() && at->first < access.end; ++at) {
        Segment& segment = at->second;
        report(segment.writer, operation, visit);
        if (access.write) {
          for (const Reader& reader : segment.readers) report(reader.operation, operation, visit);
          segment.readers.clear();
          segment.live_readers = 0;
          segment.writer = &operation;
        } else {
          segment.add_reader(operation);
        }
      }
    }
  }
  void remove_any(Operation& operation);
  void index_few();
  bool conflicts_with_few(const Access& access) const;
  Segments::iterator cover(const std::byte* begin, const std::byte* end);
  Segments::iterator insert(Segments::iterator before, const std::byte* begin, const std::byte* end);
  Segments::iterator split(Segments::iterator at, const std::byte* where);
  Segments::iterator drop(Segments::iterator at);

  // As many as a pipeline has in flight. Where a new range lies inside the hull, all are compared, which takes 0.2 µs;
  // the map of segments takes longer.
  std::array<FewEntry, 128> few_;  ///< unordered; empty while there are segments
  std::size_t few_count_ = 0;
  /// Every entry of the list lies in here: what lies outside needs no look at the entries. It grows until the list is
  /// empty.
  const std::byte *hull_begin_ = nullptr, *hull_end_ = nullptr;
  Segments segments_;
  static constexpr std::size_t most_bulks = 8;  // each is looked through for every new operation
  std::vector<Operation*> bulks_;               ///< whose ranges are sorted; they are in none of the others
  std::vector<Segments::node_type> spare_;  ///< nodes of removed segments, reused: no allocations in the steady state
};

/// Exact intervals, one per part of a v-collective: a false conflict would add a dependency that the program does not
/// have.
MEDLEY_API void find_accesses(const Call& call, int ranks, Accesses& accesses);
/// The same for a fused message: the memory of its tensors, adjacent ranges united.
MEDLEY_API void find_accesses(const fuse::Fusion& fusion, const Call& call, int ranks, Accesses& accesses);
/// For a send or a receive.
inline Access access_of(const Call& message) {
  const bool write = message.op == Op::recv;
  const auto* begin = static_cast<const std::byte*>(write ? message.out : message.in);
  const std::int64_t count = write ? message.out_count : message.in_count;
  return {begin, begin + count * static_cast<std::int64_t>(size_of(message.dtype)), write};
}

/// Whether one of them writes what the other reads or writes.
MEDLEY_API bool conflict(const Accesses& a, const Accesses& b);

}  // namespace medley::core
