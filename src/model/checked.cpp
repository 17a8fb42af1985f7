#include "model/checked.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

namespace medley::model {
namespace {

[[noreturn]] void overflow(std::string_view what) {
  throw Error(ErrorKind::invalid,
              fmt::format("{} passes 2^63: the model, batch or sequence is too large to plan", what));
}

}  // namespace

Count product(std::initializer_list<Count> factors, std::string_view what) {
  Count result = 1;
  for (const Count factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) overflow(what);
  }
  return result;
}

Count sum(Count a, Count b, std::string_view what) {
  Count result = 0;
  if (__builtin_add_overflow(a, b, &result)) overflow(what);
  return result;
}

Count round_up(Count a, Count b) { return product({ceil_div(a, b), b}); }

}  // namespace medley::model
