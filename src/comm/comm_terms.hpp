// What all members of a new comm must give alike: its rules decide routes, so does whether its messages have exact
// sizes, and fused collectives meet only fused ones.
#pragma once

#include <fmt/format.h>

#include <medley/error.hpp>
#include <string>

namespace medley::core {

/// As in CommOptions.
struct CommTraits {
  bool exact = false, fuse = false;
};

struct CommTerms {
  CommTraits traits{};
  std::string rules{};  ///< in canonical spelling

  std::string text() const { return fmt::format("{}{} {}", traits.exact ? 'e' : '-', traits.fuse ? 'f' : '-', rules); }
  /// Of what text() gave; anything shorter is that of no rank of this version.
  static CommTerms from_text(const std::string& text) {
    if (text.size() < 3) return {};
    return {{text[0] == 'e', text[1] == 'f'}, text.substr(3)};
  }
};

/// Throws if two members differ.
inline void compare_terms(const std::string& comm, int first, const CommTerms& expected, int other,
                          const CommTerms& given) {
  if (given.rules != expected.rules) {
    throw Error(ErrorKind::mismatch,
                fmt::format("making comm {}: rank {} gives the rules \"{}\" but rank {} gives \"{}\"", comm, first,
                            expected.rules, other, given.rules),
                {.comm = comm, .ranks = {first, other}});
  }
  if (given.traits.exact != expected.traits.exact) {
    throw Error(ErrorKind::mismatch,
                fmt::format("making comm {}: rank {} declares that messages have exact sizes but rank {} does not",
                            comm, expected.traits.exact ? first : other, expected.traits.exact ? other : first),
                {.comm = comm, .ranks = {first, other}});
  }
  if (given.traits.fuse != expected.traits.fuse) {
    throw Error(ErrorKind::mismatch,
                fmt::format("making comm {}: rank {} wants automatic fusion but rank {} does not", comm,
                            expected.traits.fuse ? first : other, expected.traits.fuse ? other : first),
                {.comm = comm, .ranks = {first, other}});
  }
}

}  // namespace medley::core
