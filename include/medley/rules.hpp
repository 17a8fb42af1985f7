// Rules that say which backend carries which operation, written as one line of text:
//     all_reduce:0-4K=shm; all_to_all=mpi/pairwise; send=ucx; *@cuda=nccl; *=gloo
// A context or a comm takes them; tools that route calls themselves use choose().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <medley/export.hpp>
#include <medley/types.hpp>

namespace medley {

/// A backend, and optionally one of its algorithms by name.
struct Choice {
  std::string backend;
  std::string algorithm{};  ///< empty: the backend's own choice; "+int8": compressed by that codec
  bool operator==(const Choice&) const = default;
};

/// OP[:FROM-TO][@MEMORY]=BACKEND[/ALGORITHM], separated by semicolons; the first match wins (docs/routing.md).
///
/// - OP: an operation, or `*`. `send`, `recv` and `p2p` all mean sends and receives, which take the same route.
/// - FROM-TO: sizes of the whole tensor in bytes. Both ends are inclusive, and either may be left out. Rules with a
///   size apply to sends and receives only on comms with exact sizes (CommOptions::exact). gatherv, scatterv and
///   all_to_allv are routed by the size of an earlier such call, on which the ranks have agreed.
/// - BACKEND: one that the comm does not have skips the rule. BACKEND+CODEC compresses; auto+CODECS leaves the route to
///   the table and allows it these codecs (docs/compression.md).
class MEDLEY_API Rules {
 public:
  Rules() = default;
  /// Throws Error(invalid) that quotes the rule it cannot parse.
  static Rules parse(std::string_view text);

  struct Rule {
    std::optional<Op> op{};  ///< none: every operation
    std::int64_t from = 0;
    std::int64_t to = INT64_MAX;
    std::optional<Memory> memory{};  ///< none: every kind
    Choice choice;
    bool sized() const noexcept { return from > 0 || to < INT64_MAX; }
    /// `exact`: whether the comm has messages of exact size, so that rules with a size apply to them.
    bool fits(Op what, Memory where, bool exact = false) const noexcept;
  };

  /// The first rule that names a backend and matches; null if none does.
  const Choice* choose(Op op, std::int64_t bytes, Memory memory = Memory::host, bool exact = false) const noexcept;
  const std::vector<Rule>& list() const noexcept { return rules_; }
  bool empty() const noexcept { return rules_.empty(); }
  /// The same rules in a canonical spelling: equal rules have equal texts.
  std::string text() const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace medley
