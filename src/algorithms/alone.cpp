// Every operation on a comm with one rank.
#include "algorithms/algorithms.hpp"

namespace medley::algorithms {

void do_alone(const Call& call) {
  const std::size_t element = size_of(call.dtype);
  const auto at = [&](const std::int64_t* offsets) {
    return offsets ? static_cast<std::size_t>(offsets[0]) * element : 0;
  };
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  switch (call.op) {
    case Op::barrier:
    case Op::broadcast: break;
    case Op::reduce:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::reduce_scatterv: {
      const void* sources[] = {in ? in + at(call.in_offsets) : nullptr};
      if (call.out_count > 0) {
        reducer(call.dtype, call.reduce)(out, sources, 1, static_cast<std::size_t>(call.out_count), 1, false);
      }
      break;
    }
    default:
      if (call.out_count > 0) {
        copy_bytes(out + at(call.out_offsets), in + at(call.in_offsets),
                   static_cast<std::size_t>(call.out_count) * element);
      }
  }
}

}  // namespace medley::algorithms
