// How the collectives read a call and set up Gloo's options. Private to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/backend.hpp>

#include "backends/gloo/mesh.hpp"

namespace medley::gloo_backend {

inline std::size_t bytes_of(const Call& call, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(call.dtype);
}
inline char* in_of(const Call& call) { return static_cast<char*>(const_cast<void*>(call.in)); }
inline char* out_of(const Call& call) { return static_cast<char*>(call.out); }

template <class Options>
void prepare(Options& options, std::uint32_t tag) {
  options.setTag(tag);
  options.setTimeout(no_limit);
}

}  // namespace medley::gloo_backend
