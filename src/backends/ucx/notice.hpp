// What a rank tells the other members when it gives up a comm: why, and which ranks are at fault.
// Travels as an active message, beside the tagged ones.
#pragma once

#include <cstdint>
#include <medley/error.hpp>
#include <optional>
#include <string>

namespace medley::ucx {

struct Notice {
  std::uint16_t comm;  ///< the receiver's number of it
  int from;            ///< the sender's rank in it
  Error why;

  std::string pack() const;
  /// Of bytes that pack() gave; none if they cannot be that.
  static std::optional<Notice> unpack(const void* data, std::size_t bytes);
};

}  // namespace medley::ucx
