// Relates v-collectives to their counterparts with equal parts. Used where the two are compared or replace each other.
#pragma once

#include <medley/types.hpp>

namespace medley::core {

/// Whether no rank knows all counts: all_gatherv and reduce_scatterv, in contrast, give every rank all of them.
constexpr bool has_local_counts(Op op) { return op == Op::gatherv || op == Op::scatterv || op == Op::all_to_allv; }

/// The counterpart with equal parts of a v-collective; every other operation is its own.
constexpr Op equal_counts_form(Op op) {
  switch (op) {
    case Op::gatherv: return Op::gather;
    case Op::scatterv: return Op::scatter;
    case Op::all_gatherv: return Op::all_gather;
    case Op::reduce_scatterv: return Op::reduce_scatter;
    case Op::all_to_allv: return Op::all_to_all;
    default: return op;
  }
}

}  // namespace medley::core
