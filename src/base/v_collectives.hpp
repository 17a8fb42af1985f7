// What v-collectives have in common with the forms of equal parts. Used where the two are compared or stand in for each other.
#pragma once

#include <medley/types.hpp>

namespace medley::core {

/// Whether its counts are known to some ranks only, each to a different one: all_gatherv and reduce_scatterv give all of them to
/// every rank.
constexpr bool has_local_counts(Op op) { return op == Op::gatherv || op == Op::scatterv || op == Op::all_to_allv; }

/// The form of equal parts of an operation whose parts may have any size; others are their own.
constexpr Op equal_counts_form(Op op) {
  switch (op) {
    case Op::gatherv:
      return Op::gather;
    case Op::scatterv:
      return Op::scatter;
    case Op::all_gatherv:
      return Op::all_gather;
    case Op::reduce_scatterv:
      return Op::reduce_scatter;
    case Op::all_to_allv:
      return Op::all_to_all;
    default:
      return op;
  }
}

}  // namespace medley::core
