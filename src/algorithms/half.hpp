// A half of a backend that is made of two (shm+mpi, shm|ucx), and its private lanes.
#pragma once

#include <functional>
#include <medley/backend.hpp>
#include <medley/sdk/backoff_policy.hpp>
#include <medley/sdk/device.hpp>
#include <memory>
#include <string>

#include "algorithms/capabilities.hpp"
#include "algorithms/filled_lane.hpp"

namespace medley::algorithms {

/// A backend with its agreed capabilities on all ranks.
struct Half {
  Backend* backend = nullptr;
  core::Capabilities capabilities{};
};

/// What two halves on CUDA memory need.
struct DevicePart {
  const std::shared_ptr<Device>* device = nullptr;  ///< set before the first operation; null: they are on host memory
  /// Makes a lane of host memory one of CUDA memory; for a half that does not move CUDA memory itself.
  std::function<std::unique_ptr<Lane>(std::unique_ptr<FilledLane> lane, int rank, int size)> stage{};

  bool stages(const Half& half) const { return device && !half.capabilities.has_memory(Memory::cuda); }
};

/// A private lane with every operation filled in, on CUDA memory where `on_device` says so. `on_host` receives the lane
/// below the staging one.
std::unique_ptr<Lane> connect_half(const Half& half, const CommParams& params, const DevicePart& on_device,
                                   Lane** on_host = nullptr);

/// How a thread waits for two libraries: not so short a backoff that every phase ends in a nap.
BackoffPolicy policy_of_both(const Half& one, const Half& other);

}  // namespace medley::algorithms
