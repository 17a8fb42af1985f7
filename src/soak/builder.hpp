// The parts of the generator: one random step at a time, added to a program whose values are known so far.
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
  /// A phase of one or more threads, each with comms and a part of memory of its own.
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
  std::string rules_by_size();
  /// Whether the step's route is nccl, which is also what CUDA memory takes by itself.
  bool over_nccl(const Step& step) const;
  void choose_reduction(Step& step);
  void place_collective(Step& step, const Section& section);
  void place_parts(Step& step, const Section& section);
  std::int64_t count_up_to(std::int64_t most);
  /// Where blocks of these many elements lie, none over another.
  std::vector<std::int64_t> place_apart(const std::vector<std::int64_t>& counts, DType dtype,
                                        const Section& section);
  int size_of_comm(int comm) const {
    return static_cast<int>(program_.comms[static_cast<std::size_t>(comm)].members.size());
  }

  Program& program_;
  Random& random_;
  const GenerateOptions& options_;
  Oracle oracle_;
  std::vector<int> alive_{0};  ///< comms
  int by_size_ = -1;           ///< a comm that most steps are on: it takes some operations to agree on sizes
  int largest_part_;           ///< of a section that one buffer takes, in percent
};

}  // namespace medley::soak
