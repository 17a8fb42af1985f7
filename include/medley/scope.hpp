// Names the part of a program that issues operations, such as "layer3.attn", for traces and reports.
#pragma once

#include <cstdint>
#include <string_view>

#include <medley/export.hpp>

namespace medley {

/// Operations that this thread issues during the scope's lifetime are recorded with its name. Scopes nest; the
/// innermost counts.
class MEDLEY_API Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::uint32_t outer_;
};

}  // namespace medley
