// The v-collectives: parts of different sizes.
#include <fmt/format.h>
#include <gloo/allgatherv.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>

#include "backends/gloo/collective_options.hpp"
#include "backends/gloo/collectives.hpp"
#include "backends/gloo/parts.hpp"

namespace medley::gloo_backend {

void Collectives::all_gatherv(const Call& call, std::uint32_t tag) {
  const Parts out(call.out_counts, call.out_offsets, mesh_->size, size_of(call.dtype));
  Packed packed(out, out_of(call));
  const auto me = static_cast<std::size_t>(mesh_->rank);
  ::gloo::AllgathervOptions options(mesh_);
  prepare(options, tag);
  if (packed.part(me) != in_of(call)) options.setInput(in_of(call), bytes_of(call, call.in_count));
  options.setOutput(packed.data(), std::vector<std::size_t>(out.sizes().begin(), out.sizes().end()));
  ::gloo::allgatherv(options);
  packed.unpack();
}

void Collectives::all_to_allv(const Call& call, std::uint32_t tag) {
  compare_parts(call, tag);
  const Parts in(call.in_counts, call.in_offsets, mesh_->size, size_of(call.dtype));
  const Parts out(call.out_counts, call.out_offsets, mesh_->size, size_of(call.dtype));
  Packed given(in, in_of(call), call.in == call.out), taken(out, out_of(call));
  given.pack();
  ::gloo::AlltoallvOptions options(mesh_);
  prepare(options, ~tag);  // a tag other than the comparison's
  options.setInput(given.data(), in.sizes());
  options.setOutput(taken.data(), out.sizes());
  ::gloo::alltoallv(options);
  taken.unpack();
}

/// Only here do ranks send sizes that the others must trust; Gloo would end the process over a wrong one.
void Collectives::compare_parts(const Call& call, std::uint32_t tag) {
  const auto n = static_cast<std::size_t>(mesh_->size);
  std::vector<std::int64_t> given(call.in_counts, call.in_counts + n), announced(n);
  ::gloo::AlltoallOptions options(mesh_);
  prepare(options, tag);
  options.setInput(given.data(), n);
  options.setOutput(announced.data(), n);
  ::gloo::alltoall(options);
  for (std::size_t r = 0; r < n; ++r) {
    if (announced[r] == call.out_counts[r]) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("rank {} gives {} bytes to this rank, which expects {}", r, bytes_of(call, announced[r]),
                            bytes_of(call, call.out_counts[r])),
                {.ranks = {static_cast<int>(r)}});
  }
}

}  // namespace medley::gloo_backend
