// A tuned step as JSON: reading with every field validated, and writing.
#include "route/tuned_step_text.hpp"

#include "route/json_field.hpp"

namespace medley::route {
namespace {

StepTiming read_step_timing(const JsonField& field) {
  StepTiming timing;
  timing.name = field.at("name").named();
  timing.median_us = field.at("median_us").real(shortest_us, longest_us);
  timing.low_us = field.at("low_us").real(0, timing.median_us);
  timing.high_us = field.at("high_us").real(timing.median_us, longest_us);
  timing.samples = field.at("samples").whole(1, INT64_MAX);
  return timing;
}

StepRoute read_step_route(const JsonField& field) {
  StepRoute route;
  route.op = read_op(field.at("op"));
  route.dtype = read_dtype(field, route.op);
  route.shape = read_shape(field);
  route.from = field.at("from").whole(0, INT64_MAX);
  route.to = field.at("to").whole(route.from, INT64_MAX);
  route.route = {field.at("backend").named(), field.at("algorithm").named()};
  return route;
}

std::vector<int> read_placement(const JsonField& field, const Shape& shape) {
  std::vector<int> hosts;
  const std::size_t most = static_cast<std::size_t>(shape.hosts) * static_cast<std::size_t>(shape.ranks_per_host);
  if (field.length() > most)
    field.refuse(fmt::format("it has {} ranks; the shape has at most {}", field.length(), most));
  for (std::size_t rank = 0; rank < field.length(); ++rank)
    hosts.push_back(static_cast<int>(field.at(rank).whole(0, shape.hosts - 1)));
  if (shape_of(hosts) != shape)
    field.refuse(fmt::format("its shape is {}, not {}", text(shape_of(hosts)), text(shape)));
  return hosts;
}

/// The routes of one operation are together and cover all sizes, each once.
void check_ranges(const JsonField& routes, const std::vector<StepRoute>& list) {
  const auto same_operation = [](const StepRoute& a, const StepRoute& b) {
    return a.op == b.op && a.dtype == b.dtype && a.shape == b.shape;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool first = i == 0 || !same_operation(list[i - 1], list[i]),
               last = i + 1 == list.size() || !same_operation(list[i], list[i + 1]);
    const std::int64_t from = first ? 0 : list[i - 1].to + 1;
    if (list[i].from != from)
      routes.at(i).refuse(fmt::format("it begins at {} bytes; it must at {}", list[i].from, from));
    if ((list[i].to == INT64_MAX) != last)
      routes.at(i).refuse("the last route of an operation, and no other, holds for all larger sizes");
    for (std::size_t j = 0; first && j < i; ++j) {
      if (same_operation(list[j], list[i])) routes.at(i).refuse("the routes of one operation are not together");
    }
  }
}

std::string quoted_text(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_of_timing(const StepTiming& timing) {
  return fmt::format(
      "{{\"name\": {}, \"median_us\": {:.3f}, \"low_us\": {:.3f}, \"high_us\": {:.3f}, \"samples\": {}}}",
      quoted_text(timing.name), timing.median_us, timing.low_us, timing.high_us, timing.samples);
}

std::string text_of_route(const StepRoute& route) {
  return fmt::format(
      "{{\"op\": \"{}\", \"dtype\": \"{}\", \"hosts\": {}, \"ranks_per_host\": {}, \"from\": {}, \"to\": {}, "
      "\"backend\": {}, \"algorithm\": {}}}",
      name(route.op), name(route.dtype), route.shape.hosts, route.shape.ranks_per_host, route.from, route.to,
      quoted_text(route.route.backend), quoted_text(route.route.algorithm));
}

}  // namespace

TunedStep read_tuned_step(const JsonField& field) {
  TunedStep step;
  step.name = field.at("step").words();
  step.operations = field.at("operations").words();
  step.shape = read_shape(field);
  if (field.value.contains("placement")) step.placement = read_placement(field.at("placement"), step.shape);
  step.memory = read_memory(field.at("memory"));
  step.library = field.at("library").words();
  if (field.value.contains("against")) step.against = field.at("against").named();
  step.gain = field.at("gain").real(0, 1e6);
  step.gain_low = field.at("gain_low").real(0, step.gain);
  step.gain_high = field.at("gain_high").real(step.gain, 1e6);
  step.confidence = field.at("confidence").real(0, 1);
  const JsonField settled = field.at("settled");
  if (!settled.value.is_boolean()) settled.refuse(fmt::format("{} is neither true nor false", settled.shown()));
  step.settled = settled.value.get<bool>();
  if (field.value.contains("needed_s")) step.needed_s = field.at("needed_s").real(0, 1e9);
  const JsonField times = field.at("times"), routes = field.at("routes");
  if (times.length() < 2 || times.length() > most_routes) times.refuse(fmt::format("it has {} times", times.length()));
  step.chosen = read_step_timing(times.at(std::size_t{0}));
  if (step.chosen.name != "auto") times.refuse("the first time is not that of auto");
  for (std::size_t i = 1; i < times.length(); ++i) step.libraries.push_back(read_step_timing(times.at(i)));
  if (routes.length() == 0 || routes.length() > most_routes)
    routes.refuse(fmt::format("it has {} routes", routes.length()));
  for (std::size_t i = 0; i < routes.length(); ++i) step.routes.push_back(read_step_route(routes.at(i)));
  check_ranges(routes, step.routes);
  return step;
}

std::string text_of(const TunedStep& step) {
  std::string medians, times = "\n      " + text_of_timing(step.chosen), routes;
  for (const StepTiming& timing : step.libraries) {
    medians += fmt::format("{}{}: {:.3f}", medians.empty() ? "" : ", ", quoted_text(timing.name), timing.median_us);
    times += ",\n      " + text_of_timing(timing);
  }
  for (const StepRoute& route : step.routes)
    routes += (routes.empty() ? "\n      " : ",\n      ") + text_of_route(route);
  return fmt::format(
      "  \"step\": {{{}}},\n  \"auto_us\": {:.3f},\n"
      "  \"tuned_for\": {{\"step\": {}, \"operations\": {}, \"hosts\": {}, \"ranks_per_host\": {}{}, \"memory\": \"{}\",\n"
      "    \"library\": {}{}, \"gain\": {:.4f}, \"gain_low\": {:.4f}, \"gain_high\": {:.4f}, \"confidence\": {:.3f}, \"settled\": {}{},\n"
      "    \"times\": [{}],\n    \"routes\": [{}]}},\n",
      medians, step.chosen.median_us, quoted_text(step.name), quoted_text(step.operations), step.shape.hosts,
      step.shape.ranks_per_host,
      step.placement.empty() ? "" : fmt::format(", \"placement\": [{}]", fmt::join(step.placement, ", ")),
      name(step.memory), quoted_text(step.library),
      step.against.empty() ? "" : fmt::format(", \"against\": {}", quoted_text(step.against)), step.gain, step.gain_low,
      step.gain_high, step.confidence, step.settled,
      step.needed_s > 0 ? fmt::format(", \"needed_s\": {:.0f}", step.needed_s) : "", times, routes);
}

}  // namespace medley::route
