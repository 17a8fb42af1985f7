// How long operations take according to a route table: over one backend, or over the routes the table would choose.
// Used to predict the step of a schedule.
#pragma once

#include <compare>
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

  /// µs of one operation on a comm of this shape, whose ranks are in equal blocks or not (core::in_equal_blocks); none
  /// where the table has no applicable row, or only rows of far smaller sizes.
  std::optional<double> us(Op op, DType dtype, std::int64_t bytes, const route::Shape& shape, bool in_blocks = true);

 private:
  /// Time by size, for the route taken at each measured size.
  struct Point {
    std::int64_t bytes = 0;
    double us = 0;
  };
  using Curve = std::vector<Point>;
  struct Kind {
    Op op{};
    route::DTypeClass dtype{};
    route::Shape shape{};
    bool in_blocks = true;
    auto operator<=>(const Kind&) const = default;
  };
  const Curve& curve(const Kind& kind);
  Curve make_curve(const Kind& kind) const;

  const route::Table& table_;
  std::string backend_;
  std::vector<std::string> usable_;
  Memory memory_;
  std::map<Kind, Curve> curves_;
};

}  // namespace medley::replay
