#include "fuse/compose.hpp"

#include <algorithm>

#include "compress/spec.hpp"

namespace medley::fuse {
namespace {

/// What moves without being combined moves as bytes, so that mixed types share a message.
Call as_bytes(const Call& call) {
  Call bytes = call;
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  bytes.dtype = DType::u8;
  bytes.in_count *= element;
  bytes.out_count *= element;
  return bytes;
}

bool travel_together(const Member& a, const Member& b) {
  const Call &x = a.call, &y = b.call;
  return x.op == y.op && x.memory == y.memory && x.deterministic == y.deterministic &&
         (!rooted(x.op) || x.root == y.root) && (!reduces(x.op) || (x.dtype == y.dtype && x.reduce == y.reduce)) &&
         a.backend == b.backend && a.algorithm == b.algorithm;
}

std::chrono::nanoseconds shorter(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
  return a.count() == 0 ? b : b.count() == 0 ? a : std::min(a, b);
}

/// A codec that the call names sees the call's tensor alone, and error feedback belongs to one tensor.
bool travels_alone(const Member& member) {
  return member.call.feedback || (compress::is_compressed(member.algorithm) && member.algorithm != compress::forbidden);
}

/// A fused message that still takes tensors, or a series.
struct Open {
  std::size_t at;      ///< in the result
  std::int64_t bytes;  ///< 0 for a series, which has no limit
  bool series;
};

}  // namespace

std::int64_t larger_side(const Call& call, int rank, int ranks) {
  const std::int64_t bytes = part_count(call, rank, ranks) * static_cast<std::int64_t>(size_of(call.dtype));
  return many_in(call.op) || many_out(call.op) ? bytes * ranks : bytes;
}

std::vector<Composed> compose(std::span<const Member> members, int rank, int ranks, const Limits& limits, Large large) {
  std::vector<Composed> composed;
  composed.reserve(std::min<std::size_t>(members.size(), 64));
  std::vector<Open> open;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const std::int64_t bytes = larger_side(member.call, rank, ranks);
    const bool alone = travels_alone(member), fused = !alone && bytes <= limits.of(member.call.memory, member.backend);
    const bool series = large == Large::in_series && !alone && !fused && member.call.memory == Memory::host;
    const auto found = !fused && !series ? open.end() : std::find_if(open.begin(), open.end(), [&](const Open& one) {
      const Member& first = *composed[one.at].first;
      return one.series == series && travel_together(first, member) &&
             (!series || first.call.dtype == member.call.dtype);
    });
    if (found != open.end() && (series || found->bytes + bytes <= most_message_bytes)) {
      Composed& message = composed[found->at];
      message.members.push_back(i);
      message.deadline = shorter(message.deadline, member.deadline);
      found->bytes += bytes;
      continue;
    }
    if (fused || series) {
      const Open fresh{composed.size(), bytes, series};
      if (found != open.end()) *found = fresh;
      else open.push_back(fresh);
    }
    composed.push_back(
        {.call = member.call, .members = {i}, .first = &member, .deadline = member.deadline, .series = series});
  }
  for (Composed& message : composed) {
    if (message.members.size() == 1) continue;
    message.fusion = std::make_shared<Fusion>();
    message.fusion->reserve(message.members.size());
    // A series keeps the type, for its routes and codecs
    const bool typed = message.series || reduces(message.call.op);
    for (const std::uint32_t i : message.members) {
      const Call& call = members[i].call;
      if (typed) message.fusion->add(call, rank, ranks);
      else message.fusion->add(as_bytes(call), rank, ranks);
    }
    message.call = message.fusion->call_like(typed ? message.first->call : as_bytes(message.first->call), rank, ranks);
    if (message.series) message.fusion->make_series();
  }
  for (Composed& message : composed) message.call.algorithm = message.first->algorithm;
  return composed;
}

Composed part_of_series(const Composed& series, std::span<const std::uint32_t> tensors, int rank, int ranks) {
  Composed part{.first = series.first, .deadline = series.deadline};
  const std::vector<FusedTensor>& all = series.fusion->tensors();
  if (tensors.size() > 1) part.fusion = std::make_shared<Fusion>();
  for (const std::uint32_t i : tensors) {
    part.members.push_back(series.members[i]);
    part.call = Fusion::call_of(all[i], series.call, ranks);
    if (part.fusion) part.fusion->add(part.call, rank, ranks);
  }
  if (part.fusion) {
    part.fusion->make_series();
    part.call = part.fusion->call_like(series.call, rank, ranks);
  }
  return part;
}

}  // namespace medley::fuse
