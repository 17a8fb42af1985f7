// One operation of one size on a comm, repeatable over any route: its buffers, and how they are dirtied, passed
// and checked. Used by `medley bench` and the tuner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "tune/block.hpp"
#include "tune/job_clock.hpp"

namespace medley::tune {

/// How the parts of a v-collective differ: not at all, or in proportion to rank + 1, as with popular experts.
enum class Counts : std::uint8_t { uniform, skewed };

class Workload {
 public:
  /// `bytes` is the full tensor, as in docs/routing.md; it is rounded up where it must divide among the ranks.
  Workload(Comm comm, Op op, std::size_t bytes, DType dtype, Memory memory = Memory::host,
           Counts counts = Counts::uniform);
  std::size_t bytes() const { return elements_ * size_of(dtype_); }
  /// Dirties the buffers, then takes a sample of the operation, `batch` times back to back. On CUDA memory they are
  /// issued in one stream as a user would, and the sample ends when the host has seen the last one complete.
  /// Collective.
  Sample time(JobClock& clock, const Choice& route, int batch = 1);
  /// The same without dirtying and timing.
  void run(const Choice& route, int batch);
  /// Runs it once and compares the whole output with the expected values; throws when it differs.
  void check(const Choice& route);

 private:
  void share_out(Counts counts);
  /// Rewrites output and input, as a computation would leave them.
  void dirty();
  Work issue(const Choice& route);
  Work run_message(const Options& options);
  Work run_v_form(const Options& options);
  void expect_filled_by(const Choice& route, std::size_t begin, std::size_t count, double value) const;

  Comm comm_;
  Op op_;
  DType dtype_;
  Memory memory_;
  std::size_t elements_;                ///< of the full tensor
  std::vector<std::int64_t> counts_;    ///< elements of each rank's share
  std::vector<std::int64_t> received_;  ///< all_to_allv: what each rank sends to this one
  Block in_, out_;
};

}  // namespace medley::tune
