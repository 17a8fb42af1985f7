#include "cost/sweep_axis.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "model/read_layout.hpp"

namespace medley::cost {
namespace {

// Keys of the model; widths that depend on others follow in proportion.
bool set_model_key(Model& m, const std::string& key, const std::string& value) {
  const auto number = [&] { return model::parse_count(value, "--sweep", key); };
  if (key == "layers" || key == "num_layers") m.layers = number();
  else if (key == "vocab") m.vocab = number();
  else if (key == "ffn") m.ffn = number();
  else if (key == "experts") m.experts = number();
  else if (key == "heads" || key == "a") {
    const Count heads = number();
    if (heads < 1 || m.hidden % heads != 0)
      throw Error(ErrorKind::invalid, fmt::format("--sweep heads: hidden {} is not divisible by {}", m.hidden, heads));
    m.kv_heads = m.kv_heads == m.heads ? heads : m.kv_heads;
    m.heads = heads;
    m.head_dim = m.hidden / heads;
  } else if (key == "hidden" || key == "h") {
    const Count hidden = number();
    if (hidden < 1 || hidden > (Count{1} << 24) || hidden % m.heads != 0)
      throw Error(ErrorKind::invalid, fmt::format("--sweep hidden: {} is not divisible by {} heads", hidden, m.heads));
    m.ffn = m.ffn * hidden / m.hidden;
    m.moe_ffn = m.moe_ffn * hidden / m.hidden;
    m.hidden = hidden;
    m.head_dim = hidden / m.heads;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool set_swept(Model& m, Layout& layout, const std::string& key, const std::string& value) {
  if (key == "model") {
    m = model::read_model(value);
    return true;
  }
  return model::set_layout_key(layout, key, value, "--sweep") || set_model_key(m, key, value);
}

SweepAxis parse_axis(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw Error(ErrorKind::invalid, fmt::format("--sweep '{}' is not KEY=A:B", text));
  SweepAxis axis{model::plain_key(text.substr(0, equals)), {}};
  const std::string values = text.substr(equals + 1);
  const auto ends = model::split(values, ':');
  if (ends.size() == 1) {
    axis.values = model::split(values, ',');
    if (axis.values.size() == 1 && axis.values[0].empty())
      throw Error(ErrorKind::invalid, fmt::format("--sweep '{}' names no values", text));
    return axis;
  }
  const Count first = model::parse_count(ends[0], "--sweep", axis.key),
              last = model::parse_count(ends[1], "--sweep", axis.key);
  const Count step = ends.size() > 2 ? model::parse_count(ends[2], "--sweep", axis.key) : 0;
  if (ends.size() > 3 || first < 1 || last < first || step < 0)
    throw Error(ErrorKind::invalid, fmt::format("--sweep '{}' is no range: A:B with 1 ≤ A ≤ B, or A:B:STEP", text));
  for (Count v = first; v <= last && axis.values.size() <= 100000; v = step > 0 ? v + step : v * 2)
    axis.values.push_back(std::to_string(v));
  return axis;
}

std::size_t grid_size(const std::vector<SweepAxis>& axes) {
  constexpr std::size_t most_points = 200000;
  std::size_t size = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.values.empty()) throw Error(ErrorKind::invalid, fmt::format("--sweep '{}=' names no values", axis.key));
    size *= axis.values.size();
    if (size > most_points)
      throw Error(ErrorKind::invalid,
                  fmt::format("--sweep makes {} points or more; at most {} are planned", size, most_points));
  }
  return size;
}

std::vector<std::string> grid_point(const std::vector<SweepAxis>& axes, std::size_t index) {
  std::vector<std::string> values(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    values[a] = axes[a].values[index % axes[a].values.size()];
    index /= axes[a].values.size();
  }
  return values;
}

}  // namespace medley::cost
