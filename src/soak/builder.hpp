// Builds a random program step by step, tracking the values in memory so far.
#pragma once

#include <optional>

#include "base/random.hpp"
#include "soak/generate.hpp"
#include "soak/oracle.hpp"

namespace medley::soak {

using core::Random;

class Builder {
 public:
  Builder(Program& program, Random& random, const GenerateOptions& options);
  /// A phase of one or more threads, each with its own comms and its own part of memory.
  void add_phase(int phase, int steps);

 private:
  /// What a thread of the phase may use.
  struct Section {
    std::vector<int> comms{};
    std::int64_t begin = 0, end = 0;
  };
  void add_step(int phase, int thread, Section& section);
  bool add_collective(Step& step, const Section& section);
  bool add_messages(Step& step, const Section& section);
  bool add_any_source(Step& step, const Section& section);
  bool add_comm(Step& step, Section& section);
  bool add_drop(Step& step, Section& section);
  bool add_touch(Step& step, const Section& section);
  void choose_route(Step& step);
  std::string rules_by_size(bool exact);
  /// Whether the step runs on nccl: named explicitly, or chosen because the memory is CUDA.
  bool over_nccl(const Step& step) const;
  bool may_compress(const Step& step) const;
  bool may_take_any_source(const Step& step) const;
  void choose_reduction(Step& step);
  void choose_rounding(Step& step);
  void place_collective(Step& step, const Section& section);
  void place_parts(Step& step, const Section& section);
  std::int64_t count_up_to(std::int64_t most);
  /// Non-overlapping places for blocks of these element counts.
  std::vector<std::int64_t> place_apart(const std::vector<std::int64_t>& counts, DType dtype, const Section& section);
  int size_of_comm(int comm) const { return static_cast<int>(program_.comm(comm).members.size()); }

  Program& program_;
  Random& random_;
  const GenerateOptions& options_;
  Oracle oracle_;
  std::vector<int> alive_{0};  ///< comms
  int by_size_ = -1;           ///< the comm that most steps use: agreeing on sizes takes some operations
  int largest_part_;           ///< the largest share of a section that one buffer takes, in percent
};

}  // namespace medley::soak
