// What v-forms have in common with the forms of equal parts. Used where the two are compared or stand in for each other.
#pragma once

#include <medley/types.hpp>

namespace medley::core {

/// The form of equal parts of an operation whose parts may have any size; others are their own.
constexpr Op even_form(Op op) {
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
