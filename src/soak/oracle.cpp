#include "soak/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "compress/error_bound.hpp"
#include "soak/values.hpp"

namespace medley::soak {
namespace {

const CommPlan& comm_of(const Program& program, const Step& step) { return program.comm(step.comm); }

std::size_t bytes_of(std::int64_t count, DType dtype) { return static_cast<std::size_t>(count) * size_of(dtype); }

/// Where part `r` of a side begins and how many elements it has. Without counts, the parts are equal.
std::pair<std::int64_t, std::int64_t> part_of(const Side& side, int r, int n) {
  const auto i = static_cast<std::size_t>(r);
  if (!side.counts.empty()) return {side.offsets[i], side.counts[i]};
  return {side.count / n * r, side.count / n};
}

/// The error that a codec may add to inputs of this magnitude (docs/proofs.md, "Compressed data").
double error_of(const Step& step, double largest) {
  const auto bound = compress::bound_of(compress::parse_spec(step.algorithm.substr(1)), step.dtype).value();
  const auto n = static_cast<double>(step.shares.size());
  const auto once = [&](double value) { return bound.at(value, value); };
  if (!reduces(step.op)) return once(largest);
  const double sum = n * once(largest) + n * n * largest * 0x1p-24;  // the others' values, and the rounding of the sum
  return step.op == Op::reduce_scatter ? sum + n * largest *
                                                   (step.dtype == DType::bf16  ? 0x1p-8
                                                    : step.dtype == DType::f16 ? 0x1p-11
                                                                               : 0)
                                       : sum + once(n * largest + sum);
}

}  // namespace

std::uint64_t hash(const std::byte* data, std::int64_t bytes) {
  std::uint64_t value = static_cast<std::uint64_t>(bytes);
  for (std::int64_t i = 0; i < bytes; ++i) value = core::mix(value * 257 + static_cast<std::uint64_t>(data[i]));
  return value;
}

Oracle::Oracle(const Program& program) : program_(program), found_(program.steps.size()) {
  for (int r = 0; r < program.ranks; ++r) memory_.push_back(initial_memory(program, r));
}

std::byte* Oracle::at(const Step& step, int member, std::int64_t byte) {
  const int rank = comm_of(program_, step).members[static_cast<std::size_t>(member)];
  return memory_[static_cast<std::size_t>(rank)].data() + byte;
}
const std::byte* Oracle::at(const Step& step, int member, std::int64_t byte) const {
  return const_cast<Oracle*>(this)->at(step, member, byte);
}

bool Oracle::exact(const Step& step) const {
  if (step.kind != Kind::collective || !reduces(step.op)) return true;
  const auto n = static_cast<int>(step.shares.size());
  const auto element = static_cast<std::int64_t>(size_of(step.dtype));
  std::vector<const std::byte*> inputs(static_cast<std::size_t>(n));
  // The parts of reduce_scatterv are at different offsets on each rank; other reductions have one part.
  const bool parts = step.op == Op::reduce_scatterv;
  for (int p = 0; p < (parts ? n : 1); ++p) {
    const std::int64_t count = parts ? step.shares[0].in.counts[static_cast<std::size_t>(p)] : step.shares[0].in.count;
    for (std::int64_t i = 0; i < count; ++i) {
      for (int r = 0; r < n; ++r) {
        const Side& in = step.shares[static_cast<std::size_t>(r)].in;
        const std::int64_t begin = parts ? in.offsets[static_cast<std::size_t>(p)] : 0;
        inputs[static_cast<std::size_t>(r)] = at(step, r, in.at + (begin + i) * element);
      }
      if (!soak::exact(step.dtype, step.reduce, inputs)) return false;
    }
  }
  return true;
}

/// A member's input, its parts packed.
std::vector<std::byte> Oracle::given_by(const Step& step, int member) const {
  const Side& side = step.shares[static_cast<std::size_t>(member)].in;
  std::vector<std::byte> bytes;
  const auto add = [&](std::int64_t offset, std::int64_t count) {
    const std::byte* from = at(step, member, side.at + static_cast<std::int64_t>(bytes_of(offset, step.dtype)));
    bytes.insert(bytes.end(), from, from + bytes_of(count, step.dtype));
  };
  if (side.counts.empty()) add(0, side.count);
  for (std::size_t r = 0; r < side.counts.size(); ++r) add(side.offsets[r], side.counts[r]);
  return bytes;
}

/// Writes elements into part `part` of a member's output; -1: at its beginning.
void Oracle::take(const Step& step, int member, int part, const std::byte* from, std::int64_t count) {
  const Side& side = step.shares[static_cast<std::size_t>(member)].out;
  const std::int64_t offset = part < 0 ? 0 : part_of(side, part, static_cast<int>(step.shares.size())).first;
  if (count == 0) return;
  std::memcpy(at(step, member, side.at + static_cast<std::int64_t>(bytes_of(offset, step.dtype))), from,
              bytes_of(count, step.dtype));
}

void Oracle::reduce(const Step& step, const std::vector<std::vector<std::byte>>& given) {
  const auto n = static_cast<int>(step.shares.size());
  const std::size_t element = size_of(step.dtype), total = given[0].size() / element;
  std::vector<std::byte> result(given[0].size());
  std::vector<const std::byte*> inputs(given.size());
  for (std::size_t i = 0; i < total; ++i) {
    for (std::size_t r = 0; r < given.size(); ++r) inputs[r] = given[r].data() + i * element;
    combine(result.data() + i * element, step.dtype, step.reduce, inputs);
  }
  std::size_t at_part = 0;
  for (int r = 0; r < n; ++r) {
    const std::int64_t takes = step.shares[static_cast<std::size_t>(r)].out.count;
    if (step.op == Op::all_reduce || (step.op == Op::reduce && r == step.root)) {
      take(step, r, -1, result.data(), takes);
    } else if (step.op == Op::reduce_scatter || step.op == Op::reduce_scatterv) {
      take(step, r, -1, result.data() + at_part, takes);
      at_part += bytes_of(takes, step.dtype);
    }
  }
}

void Oracle::copy_collective(const Step& step, const std::vector<std::vector<std::byte>>& given) {
  const auto n = static_cast<int>(step.shares.size());
  const auto& root_given = given[static_cast<std::size_t>(step.root)];
  for (int r = 0; r < n; ++r) {
    const bool is_root = r == step.root;
    switch (step.op) {
      case Op::broadcast:
        if (!is_root) take(step, r, -1, root_given.data(), step.shares[static_cast<std::size_t>(r)].out.count);
        break;
      case Op::gather:
      case Op::gatherv:
      case Op::all_gather:
      case Op::all_gatherv:
        if (!is_root && (step.op == Op::gather || step.op == Op::gatherv)) break;
        for (int from = 0; from < n; ++from) {
          const auto& part = given[static_cast<std::size_t>(from)];
          take(step, r, from, part.data(), static_cast<std::int64_t>(part.size() / size_of(step.dtype)));
        }
        break;
      case Op::scatter:
      case Op::scatterv:
      case Op::all_to_all:
      case Op::all_to_allv:
        for (int from = 0; from < n; ++from) {
          const bool to_all = step.op == Op::all_to_all || step.op == Op::all_to_allv;
          if (!to_all && from != step.root) continue;
          const Side& side = step.shares[static_cast<std::size_t>(from)].in;
          std::int64_t skip = 0;  // the parts are packed in the input
          for (int before = 0; before < r; ++before) skip += part_of(side, before, n).second;
          take(step, r, to_all ? from : -1, given[static_cast<std::size_t>(from)].data() + bytes_of(skip, step.dtype),
               part_of(side, r, n).second);
        }
        break;
      default: break;
    }
  }
}

void Oracle::collective(const Step& step) {
  std::vector<std::vector<std::byte>> given;
  for (int r = 0; r < static_cast<int>(step.shares.size()); ++r) given.push_back(given_by(step, r));
  if (reduces(step.op)) return reduce(step, given);
  copy_collective(step, given);
}

std::optional<double> Oracle::largest_input(const Step& step) const {
  double largest = 0;
  for (int r = 0; r < static_cast<int>(step.shares.size()); ++r) {
    const std::vector<std::byte> given = given_by(step, r);
    for (std::size_t at = 0; at < given.size(); at += size_of(step.dtype)) {
      const double value = value_of(step.dtype, given.data() + at);
      if (!std::isfinite(value)) return std::nullopt;
      largest = std::max(largest, std::fabs(value));
    }
  }
  return largest;
}

void Oracle::apply(int number) {
  const Step& step = program_.step(number);
  if (step.kind == Kind::touch) {
    std::byte* place = memory_[static_cast<std::size_t>(step.rank)].data() + step.at;
    found_.resize(program_.steps.size());
    found_[static_cast<std::size_t>(number)] = hash(place, step.bytes);
    return write_touch(program_, number, place);
  }
  if (step.kind == Kind::collective) {
    const std::optional<double> largest = rounds(step) ? largest_input(step) : std::nullopt;
    collective(step);
    if (!largest) return;
    Rounded& kept = rounded_[number];
    kept = {.error = error_of(step, *largest)};
    for (int r = 0; r < static_cast<int>(step.shares.size()); ++r) {
      const Side& out = step.shares[static_cast<std::size_t>(r)].out;
      const std::byte* from = at(step, r, out.at);
      kept.exact.emplace_back(from, from + bytes_of(out.count, step.dtype));
    }
    return;
  }
  // A step's messages touch different memory, but a message must not send what another one has just written.
  std::vector<std::vector<std::byte>> sent;
  for (const Packet& p : step.packets) {
    const std::byte* from = at(step, p.from, p.from_at);
    sent.emplace_back(from, from + bytes_of(p.count, step.dtype));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Packet& p = step.packets[i];
    std::copy(sent[i].begin(), sent[i].end(), at(step, p.to, p.to_at));
  }
}

std::optional<Oracle> expect(const Program& program) {
  Oracle oracle(program);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (program.steps[i].removed) continue;
    if (!oracle.exact(program.steps[i])) return std::nullopt;
    if (rounds(program.steps[i]) && !oracle.largest_input(program.steps[i])) return std::nullopt;
    oracle.apply(static_cast<int>(i));
  }
  return oracle;
}

}  // namespace medley::soak
