// One operation of one size on a comm, ready to be repeated: its buffers, how they are dirtied, called and checked.
// Used by `medley bench` and the tuner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/medley.hpp>
#include <memory>
#include <string>
#include <vector>

namespace medley::tune {

class Workload {
 public:
  /// `bytes` is the full tensor as CONTRACT says; it is rounded up where it must divide among the ranks.
  Workload(Comm comm, Op op, std::size_t bytes, DType dtype, std::string backend);
  std::size_t bytes() const { return elements_ * size_of(dtype_); }
  /// Rewrites output and input by plain stores, as a computation would leave them.
  void dirty();
  void run();
  /// Runs it once and compares the whole output with what it must be; throws when it differs.
  void check();

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Block = std::unique_ptr<std::byte[], Free>;
  static Block allocate(std::size_t bytes);
  void expect_filled_by(std::size_t begin, std::size_t count, double value) const;
  Buffer out(std::size_t count) const { return {out_.get(), static_cast<std::int64_t>(count), dtype_}; }
  ConstBuffer in(std::size_t count) const { return {in_.get(), static_cast<std::int64_t>(count), dtype_}; }

  Comm comm_;
  Op op_;
  DType dtype_;
  std::string backend_;
  std::size_t elements_;   ///< of the full tensor
  std::size_t part_;       ///< of one rank's share
  std::size_t in_count_ = 0, out_count_ = 0;
  std::vector<std::int64_t> counts_;
  Block in_, out_;
};

}  // namespace medley::tune
