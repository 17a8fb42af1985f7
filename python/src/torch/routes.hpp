// The program's choice of backend per operation: `with medley.torch.route("all_to_all=mpi"):`. Rules are
// those of medley/rules.hpp. torch has one all_to_all for equal and unequal parts, so a rule also covers the
// v-collective.
#pragma once

#include <string>

#include <medley/rules.hpp>

namespace medley::torch {

/// The same rules plus one for the v-collective of each operation that has one.
std::string with_v_forms(const std::string& rules);

/// The rules in force for the whole process, innermost last. They apply to every thread, because torch runs
/// the backward pass, and with it most of DDP's communication, on its own threads. Rules by size are
/// rejected: ranks that see different sizes would take different routes.
void push_route(const std::string& rules);
void pop_route();
/// Their choice for an operation; empty if there is none.
Choice routed(Op op, Memory memory);

}  // namespace medley::torch
