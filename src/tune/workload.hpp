// One operation of one size on a comm, ready to be repeated over any route: its buffers, how they are dirtied, called
// and checked. Used by `medley bench` and the tuner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/medley.hpp>
#include <memory>
#include <string>
#include <vector>

namespace medley::tune {

/// How the parts of a v-form differ: not at all, or in proportion to 1, 2, 3, … of the ranks, as popular experts do.
enum class Counts : std::uint8_t { uniform, skewed };

class Workload {
 public:
  /// `bytes` is the full tensor as CONTRACT says; it is rounded up where it must divide among the ranks.
  Workload(Comm comm, Op op, std::size_t bytes, DType dtype, Counts counts = Counts::uniform);
  std::size_t bytes() const { return elements_ * size_of(dtype_); }
  /// Rewrites output and input by plain stores, as a computation would leave them.
  void dirty();
  void run(const Choice& route);
  /// Runs it once and compares the whole output with what it must be; throws when it differs.
  void check(const Choice& route);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Block = std::unique_ptr<std::byte[], Free>;
  static Block allocate(std::size_t bytes);
  void share_out(Counts counts);
  void run_v_form(const Options& options);
  void expect_filled_by(const Choice& route, std::size_t begin, std::size_t count, double value) const;
  Buffer out(std::size_t count) const { return {out_.get(), static_cast<std::int64_t>(count), dtype_}; }
  ConstBuffer in(std::size_t count) const { return {in_.get(), static_cast<std::int64_t>(count), dtype_}; }

  Comm comm_;
  Op op_;
  DType dtype_;
  std::size_t elements_;                ///< of the full tensor
  std::vector<std::int64_t> counts_;    ///< elements of each rank's share
  std::vector<std::int64_t> received_;  ///< all_to_allv: what each rank gives this one
  std::size_t in_count_ = 0, out_count_ = 0;
  Block in_, out_;
};

}  // namespace medley::tune
