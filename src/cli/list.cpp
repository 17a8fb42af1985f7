// medley list: the names that other commands take, with a line about each, from the library's own tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <medley/error.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "comm/backend_loader.hpp"
#include "cost/machine.hpp"
#include "model/zoo.hpp"

namespace medley::cli {
namespace {

struct Entry {
  std::string name, about;
};

std::vector<Entry> models() {
  std::vector<Entry> out;
  for (const model::Model& m : model::zoo()) {
    std::string about = fmt::format("{}, hidden {}, {} heads, {} layers, vocabulary {}", m.family, m.hidden, m.heads,
                                    m.layers, m.vocab);
    if (m.moe()) about += fmt::format(", {} experts, top {}", m.experts, m.top_k);
    out.push_back({m.name, about});
  }
  return out;
}

std::vector<Entry> gpus() {
  std::vector<Entry> out;
  for (const cost::Gpu& gpu : cost::all_gpus())
    out.push_back(
        {gpu.name, fmt::format("bf16 at {:.0f} TFLOP/s, {:.0f} GB of memory at {:.0f} GB/s, {} multiprocessors",
                               gpu.bf16_tflops, gpu.hbm_gb, gpu.hbm_gb_per_s, gpu.sms)});
  return out;
}

std::vector<Entry> machines() {
  std::vector<Entry> out;
  for (const std::string_view name : cost::machine_names()) {
    const cost::Machine m = cost::find_machine(std::string(name));
    out.push_back({m.name, fmt::format("hosts of {} {}, {:.0f} GB/s inside, {:.0f} GB/s between hosts", m.gpus_per_host,
                                       m.gpu.name, m.inside.gb_per_s, m.between.gb_per_s)});
  }
  return out;
}

std::vector<Entry> backends() {
  std::vector<Entry> out;
  for (const auto& known : core::known_backends()) {
    const std::string reason = known->unavailable();
    out.push_back({known->name(), reason.empty() ? "available" : "not available: " + reason});
  }
  return out;
}

std::vector<Entry> ops() {
  std::vector<Entry> out;
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    std::string about = is_collective(op) ? "collective" : "point to point";
    if (rooted(op)) about += ", with a root";
    if (reduces(op)) about += ", combines elements";
    if (is_v_collective(op)) about += ", parts of different sizes";
    out.push_back({std::string(name(op)), about});
  }
  return out;
}

const std::map<std::string, std::vector<Entry> (*)()>& kinds() {
  static const std::map<std::string, std::vector<Entry> (*)()> all{
      {"backends", backends}, {"gpus", gpus}, {"machines", machines}, {"models", models}, {"ops", ops}};
  return all;
}

int run_list(const std::string& kind, const std::string& json) {
  const auto found = kinds().find(kind);
  if (found == kinds().end()) {
    std::vector<std::string> names;
    for (const auto& [known, entries] : kinds()) names.push_back(known);
    throw Error(ErrorKind::invalid,
                fmt::format("there is no list of \"{}\"; there are {}", kind, fmt::join(names, ", ")));
  }
  const std::vector<Entry> entries = found->second();
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  Table table({kind.substr(0, kind.size() - 1), ""});
  for (const Entry& entry : entries) {
    table.add({entry.name, entry.about});
    out.push_back({{"name", entry.name}, {"about", entry.about}});
  }
  if (json != "-") fmt::print("{}", table.str());
  write_json(json, {{kind, out}});
  return 0;
}

}  // namespace

void add_list(CLI::App& app) {
  auto kind = std::make_shared<std::string>();
  auto json = std::make_shared<std::string>();
  CLI::App* list = add_command(app, "list", "Names that other commands take: models, gpus, machines, backends, ops",
                               "medley list models", [kind, json] { return run_list(*kind, *json); });
  list->add_option("KIND", *kind, "Kind: models, gpus, machines, backends or ops")->required();
  add_json(*list, *json, "the names");
}

}  // namespace medley::cli
