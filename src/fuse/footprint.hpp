// The memory of collected tensors: finds a tensor that overlaps one collected before it, where one of the two is
// written.
#pragma once

#include <cstddef>
#include <map>
#include <medley/backend.hpp>
#include <vector>

namespace medley::fuse {

class MEDLEY_API Footprint {
 public:
  /// Whether the call writes what is in the footprint, or reads what is written there.
  bool conflicts(const Call& call) const;
  void add(const Call& call);
  void clear();
  bool empty() const { return reads_.empty() && writes_.empty(); }

 private:
  using Ranges = std::map<const std::byte*, const std::byte*>;  ///< begin to end; they do not overlap
  static bool meets(const Ranges& ranges, const std::byte* begin, const std::byte* end);
  static void unite(Ranges& ranges, const std::byte* begin, const std::byte* end);
  Ranges reads_, writes_;
};

/// Collects the memory of many calls at once: sorting it takes a fifth of the time of a Footprint.
class MEDLEY_API Overlaps {
 public:
  void reserve(std::size_t calls) { ranges_.reserve(2 * calls); }
  void add(const Call& call);
  /// Whether two of the calls overlap, where one of them writes.
  bool any();

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    bool write;
  };
  std::vector<Range> ranges_;
};

}  // namespace medley::fuse
