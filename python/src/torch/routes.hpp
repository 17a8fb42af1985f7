// Which backend carries which operation, where the program says so: `with
// medley.torch.route("all_to_all=mpi"):`. Rules are medley/rules.hpp's. torch has one all_to_all for equal
// and uneven parts, so a rule covers both forms.
#pragma once

#include <string>

#include <medley/rules.hpp>

namespace medley::torch {

/// The same rules with one more for the v-collective of each operation that has one.
std::string with_v_forms(const std::string& rules);

/// The rules in force for the whole process, innermost last. They hold on every thread, since torch runs the
/// backward pass, and with it most of DDP's communication, on threads of its own. Sizes are refused: a call
/// that only one rank sees differently would take two ways.
void push_route(const std::string& rules);
void pop_route();
/// What they say about an operation; empty where nothing is said.
Choice routed(Op op, Memory memory);

}  // namespace medley::torch
