// Exchange of NCCL's unique ids through the store.
#pragma once

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <medley/error.hpp>
#include <string>

namespace medley::nccl {

inline ncclUniqueId make_id() {
  ncclUniqueId id{};
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
    throw Error(ErrorKind::system, fmt::format("ncclGetUniqueId failed: {}", ncclGetErrorString(result)));
  }
  return id;
}

inline std::string to_text(const ncclUniqueId& id) { return {id.internal, sizeof id.internal}; }

inline ncclUniqueId from_text(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != sizeof id.internal) throw Error(ErrorKind::mismatch, "a peer's NCCL has ids of another size");
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

}  // namespace medley::nccl
