#include "fuse/compose.hpp"

#include <algorithm>

#include "compress/spec.hpp"

namespace medley::fuse {
namespace {

/// What moves without being combined moves as bytes, so that mixed types share a message.
Call as_bytes(const Call& call) {
  if (reduces(call.op)) return call;
  Call bytes = call;
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  bytes.dtype = DType::u8;
  bytes.in_count *= element;
  bytes.out_count *= element;
  return bytes;
}

bool travel_together(const Member& a, const Member& b) {
  const Call &x = a.call, &y = b.call;
  return x.op == y.op && x.memory == y.memory && x.deterministic == y.deterministic && (!rooted(x.op) || x.root == y.root) &&
         (!reduces(x.op) || (x.dtype == y.dtype && x.reduce == y.reduce)) && a.backend == b.backend && a.algorithm == b.algorithm;
}

std::chrono::nanoseconds shorter(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
  return a.count() == 0 ? b : b.count() == 0 ? a : std::min(a, b);
}

/// A codec that the call names sees the call's tensor alone, and error feedback belongs to one tensor.
bool travels_alone(const Member& member) {
  return member.call.feedback || (compress::is_compressed(member.algorithm) && member.algorithm != compress::forbidden);
}

/// A fused message that still takes tensors.
struct Open {
  std::size_t at;          ///< in the result
  std::int64_t bytes;
};

}  // namespace

std::int64_t larger_side(const Call& call, int rank, int ranks) {
  const std::int64_t bytes = part_count(call, rank, ranks) * static_cast<std::int64_t>(size_of(call.dtype));
  return many_in(call.op) || many_out(call.op) ? bytes * ranks : bytes;
}

std::vector<Composed> compose(std::span<const Member> members, int rank, int ranks, const Limits& limits) {
  std::vector<Composed> composed;
  composed.reserve(std::min<std::size_t>(members.size(), 64));
  std::vector<Open> open;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const std::int64_t bytes = larger_side(member.call, rank, ranks);
    const std::int64_t limit = travels_alone(member) ? -1 : limits.of(member.call.memory);
    const auto found = bytes > limit ? open.end() : std::find_if(open.begin(), open.end(), [&](const Open& one) {
      return travel_together(*composed[one.at].first, member);
    });
    if (found != open.end() && found->bytes + bytes <= most_message_bytes) {
      Composed& message = composed[found->at];
      message.members.push_back(i);
      message.deadline = shorter(message.deadline, member.deadline);
      found->bytes += bytes;
      continue;
    }
    if (bytes <= limit) {
      const Open fresh{composed.size(), bytes};
      if (found != open.end()) *found = fresh;
      else open.push_back(fresh);
    }
    composed.push_back({.call = member.call, .members = {i}, .first = &member, .deadline = member.deadline});
  }
  for (Composed& message : composed) {
    if (message.members.size() == 1) continue;
    message.fusion = std::make_shared<Fusion>();
    for (const std::uint32_t i : message.members) message.fusion->add(as_bytes(members[i].call), rank, ranks);
    message.call = message.fusion->call_like(as_bytes(message.first->call), rank, ranks);
  }
  for (Composed& message : composed) message.call.algorithm = message.first->algorithm;
  return composed;
}

}  // namespace medley::fuse
