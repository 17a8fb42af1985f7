// Runs one case on a comm and compares all memory of the calling rank with what the reference says.
#pragma once

#include <gtest/gtest.h>

#include <medley/medley.hpp>
#include <memory>
#include <optional>

#include "conformance/guarded.hpp"
#include "conformance/shape.hpp"
#include "conformance/under_test.hpp"
#include "conformance/values.hpp"

namespace medley::conformance {

/// How a caller waits.
enum class Style { blocking, wait, test };

inline Work issue(Comm& comm, const Case& c, const Shape& s, ConstBuffer in, Buffer out, Options options) {
  switch (c.op) {
    case Op::broadcast:
      return comm.broadcast(
          s.gives ? Buffer(const_cast<void*>(in.data), in.count, in.dtype, in.memory, in.device) : out, c.root,
          options);
    case Op::reduce: return comm.reduce(in, out, c.reduce, c.root, options);
    case Op::all_reduce: return comm.all_reduce(in, out, c.reduce, options);
    case Op::gather: return comm.gather(in, out, c.root, options);
    case Op::all_gather: return comm.all_gather(in, out, options);
    case Op::scatter: return comm.scatter(in, out, c.root, options);
    case Op::reduce_scatter: return comm.reduce_scatter(in, out, c.reduce, options);
    case Op::all_to_all: return comm.all_to_all(in, out, options);
    case Op::barrier: return comm.barrier(options);
    case Op::gatherv: return comm.gatherv(in, out, s.out_parts.parts(), c.root, options);
    case Op::scatterv: return comm.scatterv(in, s.in_parts.parts(), out, c.root, options);
    case Op::all_gatherv: return comm.all_gatherv(in, out, s.out_parts.parts(), options);
    case Op::reduce_scatterv: return comm.reduce_scatterv(in, s.in_parts.parts(), out, c.reduce, options);
    case Op::all_to_allv: return comm.all_to_allv(in, s.in_parts.parts(), out, s.out_parts.parts(), options);
    default: throw std::logic_error("not a collective");
  }
}

/// A pending case: its memory, the expected result, and its Work.
class Trial {
 public:
  Trial(const Comm& comm, const Case& c)
      : case_(c), rank_(comm.rank()), n_(comm.size()), shape_(shape_of(c, rank_, n_)), element_(size_of(c.dtype)) {
    // On a rank with only an input or only an output there is nothing to share.
    shared_ = c.in_place && shape_.gives && shape_.takes;
    const std::int64_t in = shape_.gives ? shape_.in : 0, out = shape_.takes ? shape_.out : 0;
    if (shared_) {
      memory_.emplace_back(std::max(shape_.in_at + in, shape_.out_at + out), element_);
    } else {
      memory_.emplace_back(in, element_);
      memory_.emplace_back(out, element_);
    }
    write_input(in_data(memory_), c.dtype, c.seed, rank_, 0, in);
    expected_ = memory_;
    for (const Move& move : shape_.moves) {
      std::byte* to = out_data(expected_) + bytes(move.to);
      if (move.from == every_rank) {
        write_reduced(to, c.dtype, c.reduce, c.seed, n_, move.at, move.count);
      } else {
        write_input(to, c.dtype, c.seed, move.from, move.at, move.count);
      }
    }
  }

  void start(Comm& comm, Options options) {
    const ConstBuffer in =
        shape_.gives ? ConstBuffer(memory_[0].buffer(in_data(memory_), shape_.in, case_.dtype)) : ConstBuffer{};
    const Buffer out = shape_.takes ? memory_.back().buffer(out_data(memory_), shape_.out, case_.dtype) : Buffer{};
    // An explicitly named algorithm combines in its own order.
    rank_order_ = rank_order_promised() && (options.algorithm.empty() || options.algorithm == "native");
    work_ = issue(comm, case_, shape_, in, out, options);
  }

  void finish(Style style) {
    if (style == Style::test) {
      while (!work_.test()) std::this_thread::yield();
    } else {
      work_.wait();
    }
    for (Guarded& memory : memory_) memory.fetch();
  }

  /// What is wrong with the memory, in words; empty if nothing.
  std::string verdict() {
    if (reduces(case_.op) && floating(case_.dtype)) {
      for (const Move& move : shape_.moves) {
        const std::byte* got = out_data(memory_) + bytes(move.to);
        // Where every bit is compared below, the slow arithmetic of the bound skips most of a large tensor.
        const std::int64_t stride = rank_order_ && move.count > 100'000 ? 17 : 1;
        const std::int64_t i =
            first_beyond_bound(got, case_.dtype, case_.reduce, case_.seed, n_, move.at, move.count, stride);
        if (i >= 0) return "element " + std::to_string(move.to + i) + " is beyond the error bound";
        if (!rank_order_) std::memcpy(out_data(expected_) + bytes(move.to), got, bytes(move.count));
      }
    }
    for (std::size_t m = 0; m < memory_.size(); ++m) {
      const std::string difference = memory_[m].difference(expected_[m], element_);
      if (!difference.empty()) return (shared_ ? "" : m == 0 ? "input: " : "output: ") + difference;
    }
    return {};
  }

  /// A hash of the output's bits.
  std::int64_t fingerprint() {
    std::uint64_t hash = 1;
    const std::byte* data = out_data(memory_);
    for (std::size_t i = 0; i < bytes(shape_.out); ++i)
      hash = hash * 0x100000001b3u + static_cast<std::uint64_t>(data[i]);
    return static_cast<std::int64_t>(hash);
  }

 private:
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * element_; }
  std::byte* in_data(std::vector<Guarded>& memory) const {
    return memory[0].data() + (shared_ ? bytes(shape_.in_at) : 0);
  }
  std::byte* out_data(std::vector<Guarded>& memory) const {
    return memory.back().data() + (shared_ ? bytes(shape_.out_at) : 0);
  }

  Case case_;
  int rank_, n_;
  Shape shape_;
  std::size_t element_;
  bool shared_;
  bool rank_order_ = false;  ///< bits are compared, not only bounds
  std::vector<Guarded> memory_, expected_;
  Work work_;
};

/// Runs a case; reports and counts a wrong result, and lets exceptions pass.
inline std::string run_case(Comm& comm, const Case& c, Style style, std::vector<std::int64_t>* bits = nullptr) {
  Trial trial(comm, c);
  trial.start(comm, {.async = style != Style::blocking});
  trial.finish(style);
  if (bits) bits->push_back(trial.fingerprint());
  const std::string verdict = trial.verdict();
  if (!verdict.empty()) {
    ADD_FAILURE() << describe(c, comm.size()) << ", on rank " << comm.rank() << ": " << verdict;
  }
  return verdict;
}

}  // namespace medley::conformance
