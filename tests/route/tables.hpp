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

}  // namespace medley::route
