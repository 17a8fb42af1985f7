// The memory of collected tensors: finds a tensor that overlaps one collected before it, where one of the two is written.
#pragma once

#include <cstddef>
#include <map>
#include <medley/backend.hpp>

namespace medley::fuse {

class MEDLEY_API Footprint {
 public:
  /// Whether the call writes what is in the footprint, or reads what is written there.
  bool conflicts(const Call& call) const;
  void add(const Call& call);
  void clear();
  bool empty() const { return reads_.empty() && writes_.empty(); }

 private:
  using Ranges = std::map<const std::byte*, const std::byte*>;   ///< begin to end; they do not overlap
  static bool meets(const Ranges& ranges, const std::byte* begin, const std::byte* end);
  static void unite(Ranges& ranges, const std::byte* begin, const std::byte* end);
  Ranges reads_, writes_;
};

}  // namespace medley::fuse
