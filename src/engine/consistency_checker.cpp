#include "engine/consistency_checker.hpp"

#include <fmt/format.h>

#include "engine/routing.hpp"

namespace medley::core {

Fingerprint fingerprint_of(const Call& call, int ranks, const std::string& backend) {
  std::string text(name(call.op));
  if (call.op != Op::barrier) {
    // The counts of a v-collective may differ between ranks.
    if (!is_v_collective(call.op)) {
      text += fmt::format(" of {}", tensor_bytes(call, ranks) / static_cast<std::int64_t>(size_of(call.dtype)));
    } else {
      text += " of";
    }
    text += fmt::format(" {}", name(call.dtype));
  }
  if (reduces(call.op)) text += fmt::format(" by {}", name(call.reduce));
  if (rooted(call.op)) text += fmt::format(" with root {}", call.root);
  if (call.memory != Memory::host) text += fmt::format(" in {} memory", name(call.memory));
  return {text, call.algorithm.empty() ? backend : fmt::format("{}, {}", backend, call.algorithm)};
}

std::optional<ConsistencyChecker::Verdict> ConsistencyChecker::compare_calls(const Calls& calls, std::uint64_t sequence,
                                                                             int size) {
  const auto& [first, expected] = *calls.begin();
  for (const auto& [other, made] : calls) {
    if (made.call == expected.call) continue;
    Verdict verdict;
    verdict.ranks = {first, other};
    verdict.difference =
        fmt::format("ranks {} and {} called different things as collective #{}:", first, other, sequence);
    for (int r = 0; r < size; ++r) {
      const auto at = calls.find(r);
      verdict.difference +=
          at == calls.end() ? fmt::format("\n  rank {}: not yet", r)
                            : fmt::format("\n  rank {}: {} (over {})", r, at->second.call.call, at->second.call.route);
    }
    return verdict;
  }
  return std::nullopt;
}

std::optional<ConsistencyChecker::Verdict> ConsistencyChecker::compare_orders(const Calls& calls,
                                                                              std::uint64_t sequence) {
  std::map<std::string, std::pair<int, std::uint64_t>> first_said;  // by comm: which rank, and its count
  for (const auto& [rank, heard] : calls) {
    for (const auto& [comm, issued] : heard.before) {
      const auto& [first, expected] = first_said.try_emplace(comm, rank, issued).first->second;
      if (issued == expected) continue;
      return Verdict{.agreed = false,
                     .difference = fmt::format(
                         "comms on nccl are issued in different orders: before collective #{} rank {} had "
                         "issued {} collectives on comm {} and rank {} had issued {}; NCCL needs one order on "
                         "all ranks for comms that share a device",
                         sequence, first, expected, comm, rank, issued),
                     .ranks = {first, rank}};
    }
  }
  return std::nullopt;
}

std::optional<ConsistencyChecker::Verdict> ConsistencyChecker::hear(const std::string& comm, std::uint64_t sequence,
                                                                    int rank, int size, const Fingerprint& call,
                                                                    const IssuedBefore& before) {
  Calls& calls = open_[{comm, sequence}];
  calls[rank] = {call, before};
  if (auto different = compare_calls(calls, sequence, size)) return different;
  if (auto different = compare_orders(calls, sequence)) return different;
  if (static_cast<int>(calls.size()) < size) return std::nullopt;
  open_.erase({comm, sequence});
  return Verdict{.agreed = true};
}

void ConsistencyChecker::forget(const std::string& comm) {
  std::erase_if(open_, [&](const auto& entry) { return entry.first.first == comm; });
}

}  // namespace medley::core
