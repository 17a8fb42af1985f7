// What a route table says about the collectives of one NCCL communicator. Built when the communicator is, then read
// only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "route/nccl_algorithm.hpp"
#include "route/table.hpp"

namespace medley::nccl_tuner {

/// The collectives that NCCL asks its tuner about, in the order of NCCL's numbers for them.
inline constexpr std::array tuned_ops = {Op::broadcast, Op::reduce, Op::all_gather, Op::reduce_scatter, Op::all_reduce};

class CommRoutes {
 public:
  CommRoutes(const route::Table& table, int ranks, int nodes);

  /// What the table chose among NCCL's algorithms for this size; none: NCCL decides, as it does where its own choice
  /// was fastest and where nothing was measured.
  std::optional<route::NcclAlgorithm> find(Op op, std::int64_t bytes) const noexcept;
  /// For NCCL's log: which rows are used.
  std::string text() const;

 private:
  struct Range {
    std::int64_t to;
    std::optional<route::NcclAlgorithm> algorithm;
  };
  struct Routes {
    Op op{};
    route::Shape shape{};       ///< of the rows; the nearest measured one
    std::vector<Range> ranges;  ///< ascending, the last without end
  };
  std::vector<Routes> routes_;
};

}  // namespace medley::nccl_tuner
