#include "routes.hpp"

#include <medley/error.hpp>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <vector>

namespace medley::torch {
namespace {

std::mutex stack_mutex;
std::vector<Routes> stack;
std::atomic<int> depth{0};   // so that operations outside any route() take no lock

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// A plain operation's rule covers its v-form too: all_to_all_single with uneven splits is an all_to_allv.
bool covers(Op named, Op op) { return op == named || name(op) == std::string(name(named)) + "v"; }

}  // namespace

Routes::Routes(const std::string& rules) {
  std::istringstream list(rules);
  for (std::string rule; std::getline(list, rule, ',');) {
    if (trimmed(rule).empty()) continue;
    const auto equals = rule.find('=');
    const std::string left = trimmed(rule.substr(0, equals));
    const std::string right = equals == std::string::npos ? "" : trimmed(rule.substr(equals + 1));
    const auto op = parse_op(left);
    if (right.empty() || (!op && left != "*")) {
      throw Error(ErrorKind::invalid, "\"" + trimmed(rule) + "\" is not a route: write OPERATION=BACKEND, such as "
                                      "all_to_all=mpi, or *=shm for every operation");
    }
    for (std::size_t i = 0; i < backends_.size(); ++i) {
      if (!op || covers(*op, static_cast<Op>(i))) backends_[i] = right == "auto" ? "" : right;
    }
  }
}

void push_route(const std::string& rules) {
  Routes routes(rules);
  const std::lock_guard lock(stack_mutex);
  stack.push_back(std::move(routes));
  ++depth;
}

void pop_route() {
  const std::lock_guard lock(stack_mutex);
  stack.pop_back();
  --depth;
}

std::string routed(Op op) {
  if (depth.load(std::memory_order_relaxed) == 0) return {};
  const std::lock_guard lock(stack_mutex);
  for (auto routes = stack.rbegin(); routes != stack.rend(); ++routes) {
    if (!routes->backend(op).empty()) return routes->backend(op);
  }
  return {};
}

}  // namespace medley::torch
