// Every collective × type × reduction × size × number of ranks × placement against the sequential reference.
#include <algorithm>
#include <span>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

constexpr Op collectives[] = {Op::broadcast, Op::reduce,         Op::all_reduce,      Op::gather,     Op::all_gather,
                              Op::scatter,   Op::reduce_scatter, Op::all_to_all,      Op::barrier,    Op::gatherv,
                              Op::scatterv,  Op::all_gatherv,    Op::reduce_scatterv, Op::all_to_allv};

/// All types and reductions, or a representative few where each case takes long.
struct Selection {
  std::vector<DType> dtypes;
  std::vector<ReduceOp> reductions;
};

Selection everything() {
  Selection s;
  for (int t = 0; t < dtype_count; ++t) s.dtypes.push_back(static_cast<DType>(t));
  for (int r = 0; r < reduce_op_count; ++r) s.reductions.push_back(static_cast<ReduceOp>(r));
  return s;
}
Selection representative() { return {{DType::f32, DType::bf16, DType::i8}, {ReduceOp::sum, ReduceOp::bxor}}; }
Selection one() { return {{DType::f32}, {ReduceOp::sum}}; }

/// Runs cases on one comm, changing the style, the root and the seed from one to the next.
class Matrix {
 public:
  explicit Matrix(Comm& comm) : comm_(comm) {}

  /// `count_of(dtype)`: elements; `whole`: of the whole tensor, so that parts are an nth of it.
  template <class Count>
  void run(std::span<const Op> ops, const Selection& selection, Count count_of, bool whole) {
    for (Op op : ops) {
      for (DType dtype : selection.dtypes) {
        for (ReduceOp reduce : selection.reductions) {
          if (reduces(op) ? !reducible(dtype, reduce) : reduce != selection.reductions.front()) continue;
          for (bool in_place : {false, true}) {
            if (in_place && (op == Op::broadcast || op == Op::barrier)) continue;
            if (one_placement_each_ && in_place == (op == Op::all_to_all)) continue;
            std::int64_t count = count_of(dtype);
            if (whole && op != Op::broadcast && op != Op::reduce && op != Op::all_reduce) {
              count = (count + comm_.size() - 1) / comm_.size();
            }
            one_case({.op = op, .dtype = dtype, .reduce = reduce, .count = count, .in_place = in_place});
          }
        }
      }
    }
  }

  /// Either in place or not, where both would take too long.
  void one_placement_each() { one_placement_each_ = true; }

  void one_case(Case c) {
    if (wrong_ > 5) return;  // enough to see what is wrong
    c.seed = ++cases_;
    c.root = static_cast<int>(cases_ % static_cast<std::uint64_t>(comm_.size()));
    const auto style = static_cast<Style>(cases_ % 3);
    c.gaps = is_v_collective(c.op) && cases_ / 3 % 2 == 0;
    wrong_ += !run_case(comm_, c, style, c.op == Op::all_reduce ? &bits_ : nullptr).empty();
    if (c.op == Op::all_reduce) tried_.push_back(c);
  }

  /// all_reduce must give the same bits on every rank, in whatever order a backend combines.
  void compare_bits() {
    std::vector<std::int64_t> all(bits_.size() * static_cast<std::size_t>(comm_.size()));
    comm_.all_gather(bits_, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t index = i % bits_.size();
      ASSERT_EQ(all[i], bits_[index]) << describe(tried_[index], comm_.size()) << " gave other bits on rank "
                                      << i / bits_.size() << " than on rank " << comm_.rank();
    }
  }

  std::uint64_t cases() const { return cases_; }

 private:
  Comm& comm_;
  std::uint64_t cases_ = 0;
  int wrong_ = 0;
  bool one_placement_each_ = false;
  std::vector<std::int64_t> bits_;
  std::vector<Case> tried_;
};

auto elements(std::int64_t count) {
  return [count](DType) { return count; };
}
auto bytes(std::int64_t bytes, std::int64_t extra = 0) {
  return [=](DType dtype) { return bytes / static_cast<std::int64_t>(size_of(dtype)) + extra; };
}

void report(const Comm& comm, const Matrix& matrix) {
  if (comm.rank() == 0) std::printf("%d ranks: %lu cases\n", comm.size(), matrix.cases());
}

class MatrixTest : public testing::TestWithParam<int> {};

TEST_P(MatrixTest, small_and_medium_sizes_of_every_type_equal_the_reference) {
  with_ranks(GetParam(), [](Comm& comm) {
    Matrix matrix(comm);
    for (std::int64_t count : {0, 1, 3, 17}) matrix.run(collectives, everything(), elements(count), false);
    matrix.run(collectives, reduced() ? representative() : everything(), bytes(4096), false);
    matrix.compare_bits();
    report(comm, matrix);
  });
}

TEST_P(MatrixTest, a_mebibyte_and_one_element_equals_the_reference) {
  with_ranks(GetParam(), [](Comm& comm) {
    Matrix matrix(comm);
    matrix.run(collectives, reduced() ? one() : representative(), bytes(1 << 20, 1), true);
    matrix.compare_bits();
    report(comm, matrix);
  });
}

TEST_P(MatrixTest, thirty_three_mebibytes_equal_the_reference) {
  if (reduced() && GetParam() != 2) GTEST_SKIP() << "only with 2 ranks here";
  with_ranks(GetParam(), [](Comm& comm) {
    constexpr Op some[] = {Op::all_reduce, Op::all_to_all};
    const bool all_ops = full() || (comm.size() == 2 && !reduced());
    Matrix matrix(comm);
    if (!all_ops) matrix.one_placement_each();
    matrix.run(all_ops ? std::span<const Op>(collectives) : some, one(), bytes(33 << 20), true);
    matrix.compare_bits();
    report(comm, matrix);
  });
}

TEST_P(MatrixTest, every_rank_can_be_the_root) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::uint64_t seed = 0;
    for (Op op : collectives) {
      for (int root = 0; root < comm.size() && rooted(op); ++root) {
        for (std::int64_t count : {1, 40, 20'000, 100'000}) {
          for (bool in_place : {false, true}) {
            run_case(comm, {.op = op, .count = count, .root = root, .in_place = in_place, .seed = ++seed},
                     Style::blocking);
          }
        }
      }
    }
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, MatrixTest, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

}  // namespace
}  // namespace medley::conformance
