// Makes random programs that must finish on Medley: a pure function of the seed, the number of ranks and the
// options, so that ranks share only the seed.
#pragma once

#include <string>
#include <vector>

#include "soak/program.hpp"

namespace medley::soak {

struct GenerateOptions {
  std::vector<std::string> backends{"shm"};
  int most_steps = 40;
  std::int64_t most_memory = 4 << 20;  ///< bytes per rank
  int most_threads = 3;
  Memory memory = Memory::host;  ///< where the buffers are
  /// Most collectives leave their route to the comm, whose routes change (ShuffledRoutes)
  bool online = false;
  /// Steps that name no backend may take a route over two libraries; generate() sets it by rules()
  bool over_two = false;
  /// NCCL needs the same order of operations on all ranks, and its messages have neither tags nor lengths.
  bool with_nccl() const;
  /// The libraries that steps name. A route over two libraries serves only some comms, so no step names one.
  std::vector<std::string> libraries() const;
  /// Sends operations that name no backend over the routes over two libraries, in turn, where a comm has them.
  std::string rules() const;
};

Program generate(std::uint64_t seed, int ranks, const GenerateOptions& options);

/// The program without some of its steps and without the steps that depend on them.
Program without(const Program& program, const std::vector<int>& steps);

}  // namespace medley::soak
