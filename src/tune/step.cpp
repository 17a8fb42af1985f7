#include "tune/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <tuple>

#include "base/v_collectives.hpp"
#include "route/choose.hpp"
#include "route/table.hpp"

namespace medley::tune {
namespace {

bool one_route_for_all_sizes(Op op) { return !is_collective(op) || core::has_local_counts(op); }

constexpr std::int64_t near_sizes = 4;  // as far apart as the sizes that tune measures

StepSlot slot_of(const StepOperation& operation) {
  const Op op = route::routed_as(operation.op);
  return {.op = op,
          .dtype = route::class_of(op, operation.dtype),
          .shape = operation.shape,
          .bytes = operation.bytes,
          .in_blocks = operation.in_blocks};
}

auto kind_of(const StepSlot& slot) { return std::tuple(slot.shape, slot.op, slot.dtype); }

}  // namespace

std::vector<StepSlot> slots_of(const std::vector<StepOperation>& operations) {
  std::vector<StepSlot> sizes;
  for (const StepOperation& operation : operations) sizes.push_back(slot_of(operation));
  std::stable_sort(sizes.begin(), sizes.end(), [](const StepSlot& a, const StepSlot& b) {
    return std::tuple_cat(kind_of(a), std::tuple(a.bytes)) < std::tuple_cat(kind_of(b), std::tuple(b.bytes));
  });
  std::vector<StepSlot> slots;
  std::int64_t smallest = 0;  // of the slot that is being filled
  for (const StepSlot& next : sizes) {
    StepSlot* last = slots.empty() || kind_of(slots.back()) != kind_of(next) ? nullptr : &slots.back();
    if (last && (one_route_for_all_sizes(next.op) || next.bytes <= near_sizes * std::max<std::int64_t>(smallest, 1))) {
      last->bytes = next.bytes;
      last->in_blocks = last->in_blocks && next.in_blocks;
      continue;
    }
    smallest = next.bytes;
    slots.push_back(next);
    if (!last) continue;
    StepSlot& before = slots[slots.size() - 2];
    before.to = route::border(before.bytes, next.bytes);
    slots.back().from = before.to + 1;
  }
  return slots;
}

const Choice& StepRoutes::of(Op op, DType dtype, std::int64_t bytes, const route::Shape& shape) const {
  const Op what = route::routed_as(op);
  const route::DTypeClass of = route::class_of(what, dtype);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].holds(what, of, shape, bytes)) return routes_[i];
  }
  throw Error(ErrorKind::invalid,
              fmt::format("the step has no {} of {} bytes on {}", name(op), bytes, route::text(shape)));
}

std::string text_of(const std::vector<Choice>& routes) {
  std::string text;
  for (const Choice& route : routes) text += route.backend + "/" + route.algorithm + ";";
  return text;
}

std::string fingerprint(const std::vector<StepOperation>& operations, double computing_us) {
  std::string text = fmt::format("{:.0f} us;", computing_us);
  for (const StepOperation& o : operations)
    text += fmt::format("{} {} {} {} {};", name(o.op), name(o.dtype), o.bytes, route::text(o.shape), o.count);
  return route::hash_of(text);
}

}  // namespace medley::tune
