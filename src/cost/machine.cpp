#include "cost/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/closest.hpp"
#include "base/format_version.hpp"

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace medley::embedded {
extern const std::vector<std::pair<std::string_view, std::string_view>> machines;  // name, text
}
namespace medley::cost {
namespace {

/// Reads one table and rejects unknown keys: a misspelt key would otherwise silently leave a default.
class Section {
 public:
  Section(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

  double number(const std::string& key, double least) {
    const auto value = required(key).value<double>();
    if (!value || !std::isfinite(*value) || *value < least) {
      refuse(key, fmt::format("must be a number of at least {}", least));
    }
    return *value;
  }
  double number_or(const std::string& key, double fallback, double least) {
    known_.insert(key);
    return table_.contains(key) ? number(key, least) : fallback;
  }
  std::string text(const std::string& key) {
    const auto value = required(key).value<std::string>();
    if (!value) refuse(key, "must be a string");
    return *value;
  }
  Section section(const std::string& key) {
    const toml::table* inner = required(key).as_table();
    if (inner == nullptr) refuse(key, "must be a table");
    return {*inner, fmt::format("{} [{}]", place_, key)};
  }
  void allow(const std::string& key) { known_.insert(key); }
  void finish() const {
    for (const auto& [key, value] : table_) {
      if (!known_.contains(std::string(key.str()))) {
        throw Error(ErrorKind::invalid,
                    fmt::format("{}: unknown key '{}'; known are {}", place_, key.str(), fmt::join(known_, ", ")));
      }
    }
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& rule) const {
    throw Error(ErrorKind::invalid, fmt::format("{}: '{}' {}", place_, key, rule));
  }

 private:
  toml::node_view<const toml::node> required(const std::string& key) {
    known_.insert(key);
    const auto node = table_[key];
    if (!node) refuse(key, "is missing");
    return node;
  }
  const toml::table& table_;
  std::string place_;
  std::set<std::string> known_;
};

Link read_link(Section section) {
  const Link link{.latency_us = section.number("latency_us", 0),
                  .gb_per_s = section.number("bandwidth_gb_per_s", 1e-3),
                  .message_gap_us = section.number_or("message_gap_us", 0, 0)};
  section.finish();
  return link;
}

Level read_level(const char* name, Section section) {
  Level level{.name = name,
              .hosts = static_cast<int>(section.number("units", 1)),
              .oversubscription = section.number_or("oversubscription", 1, 1),
              .latency_us = section.number_or("latency_us", 0, 0)};
  section.finish();
  return level;
}

CostConstants read_constants(Section section) {
  CostConstants constants;
  // the name before its cause was known
  constants.debug_check_us = section.number_or("nanotron_stall_us", constants.debug_check_us, 0);
  for (const ConstantRow& row : constant_rows) {
    double& value = constants.*row.member;
    value = section.number_or(std::string(row.name), value, 0);
  }
  section.finish();
  return constants;
}

Gpu part_of(Gpu gpu, double share) {
  gpu.sms = std::max(1, static_cast<int>(gpu.sms * share));
  for (double* rate : {&gpu.bf16_tflops, &gpu.hbm_gb, &gpu.hbm_gb_per_s, &gpu.measured_tflops, &gpu.l2_mb}) {
    *rate *= share;
  }
  return gpu;
}

/// A file without a number was written before there were numbers, or by hand.
void check_number(Section& top, const std::string& source) {
  constexpr core::FileFormat file_format{"machine file", 1, machine_format,
                                         "write the machine again by the built-in ones (docs/plan-time.md)"};
  const double number = top.number_or("format", 1, 0);
  if (number != std::floor(number) || number > 1e9) top.refuse("format", "must be a whole number");
  core::check_format(file_format, source, static_cast<std::int64_t>(number));
}

Machine read(const toml::table& table, const std::string& source) {
  Section top(table, source);
  check_number(top, source);
  Machine machine;
  top.allow("name");
  machine.name = table["name"].value_or(source);
  const double share = machine.gpu_share = top.number_or("gpu_share", 1.0, 1e-3);
  if (share > 1) top.refuse("gpu_share", "must not pass 1");
  const std::string gpu = top.text("gpu");
  try {
    machine.gpu = part_of(find_gpu(gpu), share);
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid, fmt::format("{}: {}", source, error.what()));
  }
  const double per_host = top.number("gpus_per_host", 1);
  if (per_host != std::floor(per_host) || per_host > 4096) top.refuse("gpus_per_host", "must be a whole number");
  machine.gpus_per_host = static_cast<int>(per_host);
  machine.memory_gb = top.number_or("memory_gb", machine.gpu.hbm_gb, 1e-3);
  machine.inside = read_link(top.section("inside"));
  machine.between = read_link(top.section("between"));
  machine.nvls_gb_per_s = top.number_or("nvls_gb_per_s", 0, 0);
  for (const char* name : {"pod", "spine"}) {
    top.allow(name);
    if (table.contains(name)) machine.above.push_back(read_level(name, top.section(name)));
  }
  top.allow("constants");
  if (table.contains("constants")) machine.constants = read_constants(top.section("constants"));
  top.finish();
  return machine;
}

}  // namespace

std::vector<std::string_view> machine_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : embedded::machines) names.push_back(name);
  return names;
}

Machine parse_machine(std::string_view text, const std::string& source) {
  try {
    return read(toml::parse(text, source), source);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::invalid, fmt::format("{}:{}: {}", source, error.source().begin.line, error.description()));
  }
}

Machine machine_with(const Gpu& gpu) {
  static const std::vector<Machine> known = [] {
    std::vector<Machine> machines;
    for (const auto& [name, text] : embedded::machines) machines.push_back(parse_machine(text, std::string(name)));
    return machines;
  }();
  for (const Machine& machine : known)
    if (machine.gpu.name == gpu.name && machine.gpu_share == 1) return machine;
  Machine machine;
  machine.name = gpu.name;
  machine.gpu = gpu;
  machine.gpus_per_host = 8;
  machine.memory_gb = gpu.hbm_gb;
  machine.inside = {.latency_us = 3, .gb_per_s = gpu.link_gb_per_s};
  machine.between = {.latency_us = 10, .gb_per_s = 400};
  return machine;
}

Machine find_machine(const std::string& name_or_path) {
  for (const auto& [name, text] : embedded::machines) {
    if (name == name_or_path) return parse_machine(text, std::string(name));
  }
  std::error_code ignored;
  std::ifstream file(name_or_path);
  if (!file || std::filesystem::is_directory(name_or_path, ignored)) {
    throw Error(ErrorKind::invalid,
                fmt::format("machine '{}' is neither a readable file nor one of {}{}", name_or_path,
                            fmt::join(machine_names(), ", "), did_you_mean(name_or_path, machine_names())));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_machine(text.str(), name_or_path);
}

}  // namespace medley::cost
