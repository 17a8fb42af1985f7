// How long operations take according to a route table: over one backend, or over the routes the table would choose.
// Used to predict the step of a schedule.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "route/choose.hpp"

namespace medley::replay {

class OperationTimes {
 public:
  /// `backend` is one of `usable`, or empty for the table's own choice among them. The table must outlive this object.
  OperationTimes(const route::Table& table, std::string backend, std::vector<std::string> usable,
                 Memory memory = Memory::host);

  /// µs of one operation on a comm of this shape; none where the table has no applicable row, or only rows of far
  /// smaller sizes.
  std::optional<double> us(Op op, DType dtype, std::int64_t bytes, const route::Shape& shape);

 private:
  /// Time by size, for the route taken at each measured size.
  struct Point {
    std::int64_t bytes = 0;
    double us = 0;
  };
  using Curve = std::vector<Point>;
  const Curve& curve(Op op, route::DTypeClass dtype, const route::Shape& shape);
  Curve make_curve(Op op, route::DTypeClass dtype, const route::Shape& shape) const;

  const route::Table& table_;
  std::string backend_;
  std::vector<std::string> usable_;
  Memory memory_;
  std::map<std::tuple<Op, route::DTypeClass, route::Shape>, Curve> curves_;
};

}  // namespace medley::replay
