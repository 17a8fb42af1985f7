// Which backend carries which operation, where the program says so: a group's own rules, and the rules of
// `with medley.torch.route("all_to_all=mpi"):`, which go first. "all_to_all=mpi,reduce=shm"; "*" is every operation.
#pragma once

#include <array>
#include <mutex>
#include <string>

#include <medley/types.hpp>

namespace medley::torch {

class Routes {
 public:
  Routes() = default;
  /// Refuses, in a sentence, what is not a rule.
  explicit Routes(const std::string& rules);
  /// The backend's name; empty where nothing is said.
  const std::string& backend(Op op) const { return backends_[static_cast<std::size_t>(op)]; }

 private:
  std::array<std::string, op_count> backends_;
};

/// The rules in force for the whole process, innermost last. They hold on every thread, since torch runs the backward
/// pass, and with it most of DDP's communication, on threads of its own.
void push_route(const std::string& rules);
void pop_route();
/// What they say about an operation; empty where nothing is said.
std::string routed(Op op);

}  // namespace medley::torch
