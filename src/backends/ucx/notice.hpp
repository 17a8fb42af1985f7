// What a rank tells the other members when it aborts a comm: why, and which ranks are at fault. Sent as an active
// message, beside the tagged ones.
#pragma once

#include <cstdint>
#include <medley/error.hpp>
#include <optional>
#include <string>

namespace medley::ucx {

struct Notice {
  std::uint16_t comm;  ///< the receiver's number for it
  int from;            ///< the sender's rank in it
  Error why;

  std::string pack() const;
  /// Parses the bytes of pack(); none if they are malformed.
  static std::optional<Notice> unpack(const void* data, std::size_t bytes);
};

}  // namespace medley::ucx
