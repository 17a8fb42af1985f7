// Small route tables for tests.
#pragma once

#include "route/table.hpp"

namespace medley::route {

/// `reach`: the half-width of the median's interval, as a fraction.
inline Timing timing(std::string backend, std::string algorithm, double median, double reach = 0.1) {
  return {{std::move(backend), std::move(algorithm)}, median, median * (1 - reach), median * (1 + reach), 20};
}

inline Cell cell(Op op, Shape shape, std::int64_t bytes, std::vector<Timing> routes) {
  const DTypeClass dtype = reduces(op) ? DTypeClass::floating : DTypeClass::any;
  return {{.op = op, .memory = Memory::host, .dtype = dtype, .shape = shape, .bytes = bytes}, std::move(routes), 0.99};
}

inline Table small_table() {
  Table table;
  table.machine = this_machine();
  table.put(cell(Op::all_reduce, {1, 2}, 64, {timing("shm", "native", 1), timing("shm", "ring", 2)}));
  table.put(cell(Op::all_reduce, {1, 2}, 1 << 20, {timing("shm", "native", 200), timing("shm", "ring", 100)}));
  table.put(cell(Op::all_to_all, {1, 2}, 4096, {timing("shm", "pairwise", 3)}));
  return table;
}

/// small_table() as tuned for a step: a mix if `library` is empty.
inline Table tuned_table(const std::string& library = "") {
  Table table = small_table();
  TunedStep step;
  step.name = "moe", step.operations = "0123", step.shape = {1, 2}, step.library = library;
  step.libraries = {{"shm", 120, 110, 130, 20}, {"mpi", 150, 140, 160, 20}};
  step.chosen = {"auto", 100, 95, 105, 20};
  step.gain = 1.2, step.gain_low = 1.1, step.gain_high = 1.3, step.confidence = 0.99, step.settled = true;
  const auto add = [&](Op op, DTypeClass dtype, std::int64_t from, std::int64_t to, Choice mixed) {
    step.routes.push_back(
        {op, dtype, {1, 2}, from, to, library.empty() ? std::move(mixed) : Choice{library, "native"}});
  };
  add(Op::all_reduce, DTypeClass::floating, 0, 4095, {"mpi", "native"});
  add(Op::all_reduce, DTypeClass::floating, 4096, INT64_MAX, {"shm", "ring"});
  add(Op::all_to_all, DTypeClass::any, 0, INT64_MAX, {"mpi", "pairwise"});
  table.step = std::move(step);
  return table;
}

}  // namespace medley::route
