// Names the part of a program that operations belong to, such as "layer3.attn", for traces and reports.
#pragma once

#include <cstdint>
#include <string_view>

#include <medley/export.hpp>

namespace medley {

/// While it lives, operations issued by this thread are recorded with its name. Scopes nest; the inner one counts.
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
