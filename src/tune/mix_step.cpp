#include "tune/mix_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <numeric>

#include "base/host_blocks.hpp"
#include "tune/mix.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t token_bytes = 1 << 20, bucket_bytes = 1 << 19;

/// Elements of a buffer that divides among the ranks.
std::size_t elements_for(std::size_t bytes, std::size_t ranks) {
  return (bytes / sizeof(float) + ranks - 1) / ranks * ranks;
}

/// The elements that each rank gets of what one sends: skewed, as popular embedding tables are.
std::vector<std::int64_t> skewed_parts(std::int64_t ranks) {
  const auto whole = static_cast<std::int64_t>(elements_for(token_bytes, static_cast<std::size_t>(ranks)));
  std::vector<std::int64_t> parts;
  for (std::int64_t r = 0; r < ranks; ++r) parts.push_back(whole * (r + 1) * 2 / (ranks * (ranks + 1)));
  return parts;
}

Options over(const Choice& route, bool async) {
  return {.backend = route.backend, .async = async, .algorithm = route.algorithm};
}

std::int64_t bytes_of(const Block& block) { return static_cast<std::int64_t>(block.count() * sizeof(float)); }

}  // namespace

bool is_mix(std::string_view name) {
  return std::find(std::begin(mix_names), std::end(mix_names), name) != std::end(mix_names);
}

std::vector<StepOperation> operations_of_mix(std::string_view mix, const std::vector<int>& hosts) {
  const route::Shape shape = route::shape_of(hosts);
  const bool in_blocks = core::in_equal_blocks(hosts);
  const std::size_t n = hosts.size();
  const auto ranks = static_cast<int>(n);
  std::vector<StepOperation> operations;
  const auto add = [&](Op op, std::size_t elements, std::int64_t count) {
    operations.push_back({.op = op,
                          .dtype = DType::f32,
                          .bytes = static_cast<std::int64_t>(elements * sizeof(float)),
                          .shape = shape,
                          .count = count * ranks,
                          .in_blocks = in_blocks});
  };
  add(Op::all_reduce, elements_for(bucket_bytes, n), mix == "moe" ? 2 : 4);
  if (mix == "moe") add(Op::all_to_all, elements_for(token_bytes, n), 2);
  // Counted by the largest buffer that any rank sends or receives: the last rank's, which gets the largest part of
  // everyone.
  if (mix == "dlrm")
    add(Op::all_to_allv,
        std::max(elements_for(token_bytes, n), n * static_cast<std::size_t>(skewed_parts(ranks).back())), 1);
  if (mix == "dense" && ranks > 1) add(Op::send, elements_for(token_bytes, n), 1);
  return operations;
}

MixStep::MixStep(Comm comm, std::string mix, Memory memory, const std::vector<int>& hosts)
    : comm_(std::move(comm)),
      mix_(std::move(mix)),
      memory_(memory),
      shape_(route::shape_of(hosts)),
      tokens_(floats(token_bytes)),
      routed_(floats(token_bytes)),
      back_(floats(token_bytes)) {
  for (int i = 0; i < 4; ++i) buckets_.push_back(floats(bucket_bytes));
  const auto n = static_cast<std::int64_t>(comm_.size());
  sent_ = skewed_parts(n);
  received_.assign(static_cast<std::size_t>(n), sent_[static_cast<std::size_t>(comm_.rank())]);
  looked_up_ = Block(static_cast<std::size_t>(n * received_[0]), DType::f32, memory);
  operations_ = operations_of_mix(mix_, hosts);
}

MixStep::RouteFor MixStep::by(const StepRoutes& routes) const {
  return
      [this, &routes](Op op, std::int64_t bytes) -> const Choice& { return routes.of(op, DType::f32, bytes, shape_); };
}

void MixStep::run(const StepRoutes& routes) { run_by(by(routes)); }
void MixStep::check(const StepRoutes& routes, std::string_view name) { check_by(by(routes), name); }
void MixStep::run(const Choice& backend) {
  run_by([&](Op, std::int64_t) -> const Choice& { return backend; });
}
void MixStep::check(const Choice& backend) {
  check_by([&](Op, std::int64_t) -> const Choice& { return backend; },
           backend.backend.empty() ? "auto" : backend.backend);
}

/// Returns when the host has seen every operation complete.
void MixStep::run_by(const RouteFor& route) {
  std::vector<Work> issued = mix_ == "moe" ? moe(route) : mix_ == "dlrm" ? dlrm(route) : dense(route);
  for (Work& work : issued) work.wait_host();
}

/// Runs it once on values that differ between ranks.
void MixStep::check_by(const RouteFor& route, std::string_view name) {
  for (Block* block : {&tokens_, &routed_, &back_, &looked_up_}) block->fill(block == &tokens_ ? comm_.rank() + 1 : 0);
  for (Block& bucket : buckets_) bucket.fill(comm_.rank() + 1);
  if (memory_ == Memory::cuda) core::wait_for_device();
  run_by(route);
  const int n = comm_.size(), rank = comm_.rank();
  const double sum = n * (n + 1) / 2.0;
  for (std::size_t i = 0; i < (mix_ == "moe" ? 2u : 4u); ++i) expect_parts(buckets_[i], {sum}, name);
  std::vector<double> of_rank(static_cast<std::size_t>(n));
  std::iota(of_rank.begin(), of_rank.end(), 1.0);
  if (mix_ == "moe") expect_parts(routed_, of_rank, name), expect_parts(back_, {rank + 1.0}, name);
  if (mix_ == "dlrm") expect_parts(looked_up_, of_rank, name);
  if (mix_ == "dense" && n > 1) expect_parts(back_, {(rank + n - 1) % n + 1.0}, name);
  for (Block& bucket : buckets_) bucket.fill(0);  // summed in place step after step, anything else would overflow
  if (memory_ == Memory::cuda) core::wait_for_device();
}

Block MixStep::floats(std::size_t bytes) const {
  Block block(elements_for(bytes, static_cast<std::size_t>(comm_.size())), DType::f32, memory_);
  block.fill(0);
  return block;
}

void MixStep::expect_parts(Block& block, const std::vector<double>& values, std::string_view name) const {
  block.look();
  const std::size_t part = block.count() / values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (const std::size_t at = block.first_other(i * part, part, values[i]); at != (i + 1) * part) {
      throw Error(ErrorKind::mismatch,
                  fmt::format("the mix {} over {} gave a wrong value at element {}", mix_, name, at));
    }
  }
}

std::vector<Work> MixStep::sum_buckets(std::size_t count, const RouteFor& route) {
  std::vector<Work> issued;
  const Options later = over(route(Op::all_reduce, bytes_of(buckets_[0])), true);
  for (std::size_t i = 0; i < count; ++i) issued.push_back(comm_.all_reduce(buckets_[i].buffer(), sum, later));
  return issued;
}

std::vector<Work> MixStep::moe(const RouteFor& route) {
  auto issued = sum_buckets(2, route);
  const Options now = over(route(Op::all_to_all, bytes_of(tokens_)), false);
  issued.push_back(comm_.all_to_all(tokens_.buffer(), routed_.buffer(), now));
  issued.push_back(comm_.all_to_all(routed_.buffer(), back_.buffer(), now));
  return issued;
}

std::vector<Work> MixStep::dlrm(const RouteFor& route) {
  auto issued = sum_buckets(4, route);
  const auto given = static_cast<std::size_t>(std::accumulate(sent_.begin(), sent_.end(), std::int64_t{0}));
  const Options now = over(route(Op::all_to_allv, bytes_of(tokens_)), false);
  issued.push_back(comm_.all_to_allv(tokens_.buffer(given), Parts{sent_}, looked_up_.buffer(), Parts{received_}, now));
  return issued;
}

std::vector<Work> MixStep::dense(const RouteFor& route) {
  auto issued = sum_buckets(4, route);
  const int n = comm_.size(), rank = comm_.rank();
  if (n > 1) {
    const Options later = over(route(Op::send, bytes_of(tokens_)), true);
    issued.push_back(comm_.recv(back_.buffer(), (rank + n - 1) % n, later));
    issued.push_back(comm_.send(tokens_.buffer(), (rank + 1) % n, later));
  }
  return issued;
}

}  // namespace medley::tune
