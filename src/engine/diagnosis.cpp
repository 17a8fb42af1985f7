#include "engine/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/ranks_text.hpp"

namespace medley::core {
namespace {

using nlohmann::json;

std::string operation_text(const json& operation, const std::string& comm) {
  std::string text = fmt::format("{} #{}", operation.value("op", "?"), operation.value("sequence", 0));
  if (operation.contains("peer")) text += fmt::format(" with rank {}", operation["peer"].get<int>());
  if (const std::string other = operation.value("comm", comm); other != comm) text += " on comm " + other;
  if (operation.contains("backend")) text += " over " + operation["backend"].get<std::string>();
  text += " " + operation.value("state", "");
  const auto awaits = operation.value("awaits", std::vector<int>{});
  if (!awaits.empty()) text += fmt::format(", waiting for {}", ranks_text(awaits));
  return text;
}

std::string line_of(int rank, const json& status, const std::string& comm) {
  if (status.contains("gone")) return fmt::format("rank {} {}", rank, status.value("gone", ""));
  if (status.contains("unknown")) return fmt::format("rank {}: does not have this comm (any more)", rank);
  std::string text =
      fmt::format("rank {}: completed #{}, issued #{}", rank, status.value("completed", 0), status.value("issued", 0));
  for (const char* where : {"pending", "elsewhere"}) {
    for (const json& operation : status.value(where, json::array())) text += "; " + operation_text(operation, comm);
  }
  const bool idle = status.value("pending", json::array()).empty() && status.value("elsewhere", json::array()).empty();
  if (idle) text += "; in no operation";
  if (!idle && status.contains("unpolled_s")) {
    text += fmt::format("; has not polled for {:.1f} s: inside a library call, or away from Medley",
                        status["unpolled_s"].get<double>());
  }
  return text;
}

/// The collective that a rank has under this sequence number, if it is still pending there.
const json* collective_at(const json& status, std::uint64_t sequence) {
  if (!status.contains("pending")) return nullptr;
  for (const json& operation : status["pending"]) {
    if (!operation.contains("peer") && operation.value("sequence", std::uint64_t{0}) == sequence) return &operation;
  }
  return nullptr;
}

/// Ranks that have answered and have not issued the collective that the others wait in.
std::vector<int> missing_from(std::uint64_t sequence, const std::map<int, json>& answers) {
  std::vector<int> missing;
  for (const auto& [rank, status] : answers) {
    if (sequence > 0 && status.value("issued", std::uint64_t{0}) < sequence) missing.push_back(rank);
  }
  return missing;
}

/// What the missing ranks do instead.
std::string verdict(std::uint64_t sequence, const std::map<int, json>& answers, const std::vector<int>& missing) {
  std::set<std::string> kinds;
  std::set<int> inside;
  for (const auto& [rank, status] : answers) {
    if (const json* operation = collective_at(status, sequence)) {
      kinds.insert(operation->value("op", ""));
      inside.insert(status.value("world_rank", rank));
    }
  }
  std::string text;
  if (kinds.size() > 1)
    text += fmt::format("\n  The ranks called different things as #{}: {}.", sequence, fmt::join(kinds, ", "));
  if (!missing.empty()) {
    text += fmt::format("\n  {} ha{} not called #{} of this comm", ranks_text(missing),
                        missing.size() == 1 ? "s" : "ve", sequence);
    // A missing rank that waits on another comm for a rank that waits here closes a cycle.
    std::vector<std::string> elsewhere;
    bool cycle = false;
    for (int rank : missing) {
      for (const json& operation : answers.at(rank).value("elsewhere", json::array())) {
        elsewhere.push_back(fmt::format("rank {} waits in {} #{} on comm {}", rank, operation.value("op", "?"),
                                        operation.value("sequence", 0), operation.value("comm", "?")));
        for (int awaited : operation.value("awaits_world", std::vector<int>{}))
          cycle = cycle || inside.contains(awaited);
      }
    }
    text += elsewhere.empty() ? "." : fmt::format(": {}.", fmt::join(elsewhere, "; "));
    if (cycle) {
      text +=
          "\n  This is a cycle: the comms wait for each other; issue their operations in one order on all ranks, or "
          "issue them async and wait for all.";
    }
  }
  return text;
}

}  // namespace

Diagnosis diagnose(const std::string& comm, int size, std::uint64_t sequence, const std::map<int, json>& answers) {
  std::string text;
  std::vector<int> silent;
  for (int rank = 0; rank < size; ++rank) {
    const auto answer = answers.find(rank);
    if (answer == answers.end()) {
      silent.push_back(rank);
    } else {
      text += "\n  " + line_of(rank, answer->second, comm);
    }
  }
  if (!silent.empty()) {
    text +=
        fmt::format("\n  {} do{} not answer: stopped, or cut off.", ranks_text(silent), silent.size() == 1 ? "es" : "");
  }
  std::vector<int> at_fault = missing_from(sequence, answers);
  text += verdict(sequence, answers, at_fault);
  // A rank that waits for an unresponsive rank is not at fault itself.
  std::erase_if(at_fault, [&](int rank) {
    const json pending = answers.at(rank).value("pending", json::array());
    return std::any_of(pending.begin(), pending.end(), [&](const json& operation) {
      const auto awaits = operation.value("awaits", std::vector<int>{});
      return std::find_first_of(awaits.begin(), awaits.end(), silent.begin(), silent.end()) != awaits.end();
    });
  });
  at_fault.insert(at_fault.end(), silent.begin(), silent.end());
  std::sort(at_fault.begin(), at_fault.end());
  return {std::move(text), std::move(at_fault)};
}

}  // namespace medley::core
