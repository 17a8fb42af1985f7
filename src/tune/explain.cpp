#include "tune/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/v_collectives.hpp"
#include "compress/spec.hpp"
#include "engine/size_agreement.hpp"
#include "fuse/fusion.hpp"
#include "route/choose.hpp"
#include "route/pair_name.hpp"
#include "tune/size_text.hpp"

namespace medley::tune {
namespace {

/// Whether small tensors of the comm travel together, as far as the table says.
std::optional<std::string> fusion_text(const route::Table& table, const Explanation& out) {
  const auto limit = table.fusion_limit(out.asked.memory, out.shape);
  if (!limit || !fuse::fusable(out.asked.op)) return std::nullopt;
  if (*limit == 0)
    return "lists and fuse scopes send every tensor on its own: fusing was slower at every size measured";
  const auto row = std::find_if(table.fusion().begin(), table.fusion().end(), [&](const route::FusionRow& one) {
    return one.memory == out.asked.memory && one.shape == out.shape && one.backend.empty();
  });
  return fmt::format(
      "in lists and fuse scopes, tensors of up to {} travel together: at {} all_reduce was {:.1f} times as fast as one by one",
      size_text(*limit), size_text(row->sizes.front().bytes),
      row->sizes.front().separate_us / row->sizes.front().fused_us);
}

/// Why this route, and how far the row behind it is from what was asked; `row` is null where the operation was not
/// measured alone.
std::vector<std::string> reasons(const Explanation& out, const route::Table& table, const route::Chosen& chosen,
                                 const route::Cell* row) {
  std::vector<std::string> why;
  if (chosen.by_step) {
    why.push_back(
        table.step->library.empty()
            ? fmt::format("chosen on the running step {}, with what its operations do to each other", table.step->name)
            : fmt::format("no mix was surely faster than {} for the step {}, so everything takes it",
                          table.step->library, table.step->name));
  }
  if (!is_collective(out.asked.op) && !out.asked.exact) {
    why.emplace_back(
        "sends and receives take one route for all sizes: a receive may be larger than what is sent to it, unless the comm declares "
        "exact sizes (--exact)");
  } else {
    why.push_back(fmt::format("this route holds from {} to {}", size_text(out.from),
                              out.to == INT64_MAX ? "any size" : size_text(out.to)));
  }
  if (core::has_local_counts(out.asked.op)) {
    why.push_back(fmt::format(
        "the size that counts is what the ranks told each other of {} calls up to {} before, since they know "
        "different counts",
        name(out.asked.op), core::sizes_settle_after));
  }
  if (chosen.shape != out.shape) {
    why.push_back(fmt::format("{} was not measured; the rows of {} are the nearest", route::text(out.shape),
                              route::text(chosen.shape)));
  }
  if (chosen.dtype != out.dtype) {
    why.push_back(fmt::format("{} elements were not measured; {} ones stand in", name(out.dtype), name(chosen.dtype)));
  }
  if (!row) return why;
  if (row->key.bytes != out.asked.bytes)
    why.push_back(fmt::format("the row nearest in size is {}", size_text(row->key.bytes)));
  if (const Choice& first = row->routes.front().route; !chosen.by_step && first != out.route) {
    const double mixing_us = table.mixing_us(out.asked.memory, row->key.shape, first.backend);
    const std::string reason =
        route::is_split(first.backend) && !route::is_split(out.route.backend)
            ? "a split is taken only where its interval lies below that of every library"
        : mixing_us > 0 ? fmt::format("each of its operations costs those of other libraries {:.1f} µs", mixing_us)
                        : "near-equal routes (3 % or 0.1 µs) don't alternate";
    why.push_back(fmt::format("{}/{} was fastest in that row, but {}, or it is not in --backends", first.backend,
                              first.algorithm, reason));
  }
  return why;
}

}  // namespace

Explanation explain(const route::Table& table, const ExplainRequest& request) {
  if (request.hosts > request.ranks) {
    throw Error(ErrorKind::invalid, fmt::format("{} ranks cannot be on {} hosts", request.ranks, request.hosts));
  }
  Explanation out{.asked = request,
                  .dtype = route::class_of(request.op, request.dtype),
                  .shape = {request.hosts, (request.ranks + request.hosts - 1) / request.hosts},
                  .table_hash = table.hash(),
                  .measured_on = table.machine.cpu};
  const compress::Permission permission =
      request.allow.empty() ? compress::Permission() : compress::Permission::parse(request.allow);
  const auto usable = [&](const Choice& choice) {
    return request.backends.empty() ||
           std::find(request.backends.begin(), request.backends.end(), choice.backend) != request.backends.end();
  };
  const route::Chosen chosen =
      route::choose(table, request.op, request.memory, out.dtype, out.shape, usable, permission, request.exact);
  const route::SizeRange* const range = chosen.at(request.bytes);
  if (!range) return out;
  const route::Cell* const row = route::nearest_size(chosen.cells, request.bytes);
  out.found = true;
  out.route = range->route;
  out.from = range->from;
  out.to = range->to;
  out.why = reasons(out, table, chosen, row);
  if (auto text = fusion_text(table, out)) out.why.push_back(*std::move(text));
  if (!row) return out;
  out.row_bytes = row->key.bytes;
  out.row_shape = row->key.shape;
  out.confidence = row->confidence;
  const route::Timing* taken = row->find(out.route);
  const double best_us = (taken ? *taken : row->routes.front()).median_us;
  for (const route::Timing& timing : row->routes)
    out.routes.push_back({timing, timing.median_us / best_us, timing.route == out.route});
  return out;
}

nlohmann::ordered_json to_json(const Explanation& e) {
  nlohmann::ordered_json out{{"op", name(e.asked.op)},         {"bytes", e.asked.bytes},
                             {"hosts", e.shape.hosts},         {"ranks_per_host", e.shape.ranks_per_host},
                             {"memory", name(e.asked.memory)}, {"dtype", name(e.dtype)},
                             {"table", e.table_hash}};
  out["reason"] = e.found ? "table" : "fallback";
  if (!e.found) return out;
  out["route"] = {{"backend", e.route.backend}, {"algorithm", e.route.algorithm}};
  out["from"] = e.from;
  out["to"] = e.to;
  out["why"] = e.why;
  if (e.routes.empty()) return out;
  out["row"] = {{"bytes", e.row_bytes},
                {"hosts", e.row_shape.hosts},
                {"ranks_per_host", e.row_shape.ranks_per_host},
                {"confidence", e.confidence}};
  for (const auto& [timing, slower, taken] : e.routes) {
    out["routes"].push_back({{"backend", timing.route.backend},
                             {"algorithm", timing.route.algorithm},
                             {"median_us", timing.median_us},
                             {"low_us", timing.low_us},
                             {"high_us", timing.high_us},
                             {"samples", timing.samples},
                             {"slower", slower}});
  }
  return out;
}

}  // namespace medley::tune
