// The algorithms of shm collectives that a caller can name, and what is left open without a name. The backend lists
// them; Collective plans with them.
#pragma once

#include <medley/types.hpp>
#include <string_view>
#include <vector>

namespace medley::shm {

struct Algorithm {
  enum class Shots : std::uint8_t {
    by_size,
    one,  ///< each rank reads everything from the ranks that have it
    two,  ///< each rank first reads or reduces its own part, then all read the parts from each other
  };
  enum class Path : std::uint8_t {
    by_size,
    segment,  ///< copied through the shared segment
    direct,   ///< read from the giver's memory
    mixed,    ///< a scatter: some parts through the segment, while the readers of the others read them directly
  };
  Shots shots = Shots::by_size;
  Path path = Path::by_size;

  /// Empty and "native" choose everything by size.
  static Algorithm named(std::string_view name) {
    Algorithm a;
    if (name.starts_with("one_shot")) a.shots = Shots::one;
    if (name.starts_with("two_shot")) a.shots = Shots::two;
    if (name.ends_with("segment")) a.path = Path::segment;
    if (name.ends_with("direct")) a.path = Path::direct;
    if (name == "mixed") a.path = Path::mixed;
    return a;
  }

  /// Names for an operation; those of direct reads only where direct reads work.
  static std::vector<std::string_view> names(Op op, bool direct_reads) {
    switch (op) {
      case Op::broadcast:
      case Op::reduce:
      case Op::all_reduce:
        if (!direct_reads) return {"one_shot_segment", "two_shot_segment"};
        return {"one_shot_direct", "one_shot_segment", "two_shot_direct", "two_shot_segment"};
      case Op::scatter:
        if (!direct_reads) return {};
        return {"direct", "mixed", "segment"};
      case Op::gather:
      case Op::gatherv:
      case Op::scatterv:
      case Op::all_gather:
      case Op::all_gatherv:
      case Op::reduce_scatter:
      case Op::reduce_scatterv:
      case Op::all_to_all:
      case Op::all_to_allv:
        if (!direct_reads) return {};
        return {"direct", "segment"};
      default: return {};
    }
  }
};

}  // namespace medley::shm
