#include "comm/check.hpp"

#include "comm/issue.hpp"
#include "compress/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace medley::core {

extern const Call blank_call;
const Call blank_call{};

void set_compression(Call& call, const Options& options) {
  call.feedback = options.feedback;
  if (options.compress.empty()) return;
  if (!options.algorithm.empty()) {
    throw Error(ErrorKind::invalid,
                fmt::format("{}: a compressed operation takes no algorithm, but the call names {} and {}",
                            name(call.op), options.compress, options.algorithm),
                {.op = call.op});
  }
  if (options.compress == compress::none) {
    call.algorithm = compress::forbidden;
    return;
  }
  try {
    call.algorithm = compress::codec(compress::parse_spec(options.compress)).algorithm();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", name(call.op), error.what()), {.op = call.op});
  }
}

void Checker::refuse(const std::string& why) const {
  throw Error(ErrorKind::invalid, fmt::format("{} on comm {}: {}", name(op), comm.name, why),
              {.op = op, .comm = comm.name});
}

void Checker::refuse_rank(std::string_view what, int value) const {
  refuse(fmt::format("{} {} is not a rank of this comm, which has ranks 0 to {}", what, value, comm.size - 1));
}

void Checker::look_closely(std::string_view what, const ConstBuffer& buffer) const {
  if (static_cast<int>(buffer.dtype) >= dtype_count) {
    refuse(fmt::format("the {} buffer has unknown element type {}", what, static_cast<int>(buffer.dtype)));
  }
  if (buffer.count < 0) refuse(fmt::format("the {} buffer has a negative count, {}", what, buffer.count));
  if (buffer.count > 0 && !buffer.data) {
    refuse(fmt::format("the {} buffer is null but has {} elements", what, buffer.count));
  }
  if (buffer.memory == Memory::cuda) device(what, buffer);
  if (buffer.count >= surely_possible && buffer.count > INT64_MAX / 8 / comm.size)
    refuse(fmt::format("the {} buffer's count {} is impossible", what, buffer.count));
}

void Checker::device(std::string_view what, const ConstBuffer& buffer) const {
  if (buffer.device == comm.device) return;
  refuse(fmt::format("the {} buffer lies on CUDA device {} but this context has device {} (ContextOptions::device)",
                     what, buffer.device, comm.device));
}

void Checker::same_type(const ConstBuffer& in, const ConstBuffer& out) const {
  if (in.dtype != out.dtype) {
    refuse(fmt::format("the input is {} but the output is {}", name(in.dtype), name(out.dtype)));
  }
  if (in.memory != out.memory) {
    refuse(fmt::format("the input is in {} memory but the output is in {} memory", name(in.memory), name(out.memory)));
  }
}

void Checker::reduction(DType dtype, ReduceOp reduce) const {
  if (static_cast<int>(reduce) >= reduce_op_count)
    refuse(fmt::format("unknown reduction {}", static_cast<int>(reduce)));
  if (!reducible(dtype, reduce)) {
    refuse(fmt::format("{} is not defined for {}: {}", name(reduce), name(dtype),
                       reduce == ReduceOp::avg ? "averaging needs a floating-point type"
                                               : "bitwise reductions need an integer or bool type"));
  }
}

void Checker::count(std::string_view what, std::int64_t value, std::int64_t expected, std::string_view because) const {
  if (value != expected)
    refuse(fmt::format("the {} buffer has {} elements but needs {} ({})", what, value, expected, because));
}

void Checker::parts(std::string_view what, const ConstBuffer& whole, const Parts& parts) const {
  const auto ranks = static_cast<std::size_t>(comm.size);
  if (parts.counts.size() != ranks || (!parts.offsets.empty() && parts.offsets.size() != ranks)) {
    refuse(fmt::format("{} has {} counts and {} offsets for {} ranks", what, parts.counts.size(), parts.offsets.size(),
                       ranks));
  }
  std::int64_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::int64_t begin = parts.offsets.empty() ? at : parts.offsets[r];
    if (parts.counts[r] < 0) refuse(fmt::format("{} has a negative count, {}, for rank {}", what, parts.counts[r], r));
    if (begin < 0 || parts.counts[r] > whole.count || begin > whole.count - parts.counts[r]) {
      // In unsigned arithmetic, since the sum may be beyond any count.
      const auto end = static_cast<std::uint64_t>(begin) + static_cast<std::uint64_t>(parts.counts[r]);
      refuse(fmt::format("{} puts rank {} at elements {} to {}, outside the buffer of {}", what, r, begin,
                         static_cast<std::int64_t>(end), whole.count));
    }
    at = begin + parts.counts[r];
  }
}

void Checker::written_parts(std::string_view what, const ConstBuffer& whole, const Parts& list) const {
  parts(what, whole, list);
  if (list.offsets.empty()) return;
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < list.counts.size(); ++r) {
    if (list.counts[r] > 0) order.push_back(r);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return list.offsets[a] < list.offsets[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto [a, b] = std::minmax(order[i - 1], order[i]);
    if (list.offsets[order[i - 1]] + list.counts[order[i - 1]] > list.offsets[order[i]]) {
      refuse(fmt::format("in {} the parts of ranks {} and {} overlap", what, a, b));
    }
  }
}

void Checker::overlap(const ConstBuffer& in, const ConstBuffer& out, const void* in_place_in,
                      const void* in_place_out) const {
  if (in.count == 0 || out.count == 0 || in_place_in == in_place_out) return;
  const auto* in_begin = static_cast<const std::byte*>(in.data);
  const auto* out_begin = static_cast<const std::byte*>(out.data);
  if (in_begin < out_begin + out.bytes() && out_begin < in_begin + in.bytes()) {
    refuse("the input and output buffers overlap; give the same memory for both to work in place, or separate buffers");
  }
}

}  // namespace medley::core
