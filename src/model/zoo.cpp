#include "model/zoo.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>

#include "model/config_text.hpp"
#include "model/families.hpp"
#include "model/read_model.hpp"

namespace medley::model {
namespace {

constexpr const char* table =
#include "zoo.inc"
    ;

constexpr const char* configs =
#include "zoo_configs.inc"
    ;

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) out.push_back(cell);
  return out;
}

Count number(const std::string& cell) { return cell.empty() ? 0 : std::stoll(cell); }

// Columns:
// name,hidden,heads,kv_heads,head_dim,layers,ffn,vocab,seq,experts,top_k,moe_ffn,gated,family,tied,confidence
Model model_from_row(const std::vector<std::string>& row) {
  Model m;
  m.name = row[0];
  m.hidden = number(row[1]);
  m.heads = number(row[2]);
  m.kv_heads = number(row[3]);
  m.head_dim = number(row[4]);
  m.layers = number(row[5]);
  m.ffn = number(row[6]);
  m.vocab = number(row[7]);
  m.seq = number(row[8]);
  m.experts = number(row[9]);
  m.top_k = number(row[10]);
  m.moe_ffn = number(row[11]);
  apply_family(m, row[13]);
  m.gated = row[12] == "yes";
  m.tied_embeddings = row[14] == "yes";
  if (m.positions == Positions::learned) m.position_rows = m.seq + (m.family == "opt" ? 2 : 0);
  return m;
}

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

const std::vector<Model>& zoo() {
  static const std::vector<Model> models = [] {
    std::vector<Model> out;
    std::istringstream lines(table);
    std::string line;
    std::getline(lines, line);  // the header
    while (std::getline(lines, line)) {
      if (const auto row = cells(line); row.size() >= 15) out.push_back(model_from_row(row));
    }
    std::istringstream more(configs);
    while (std::getline(more, line)) {
      const auto space = line.find(' ');
      if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
      out.push_back(model_from_huggingface(config_from_text(line.substr(space + 1)), line.substr(0, space)));
    }
    return out;
  }();
  return models;
}

std::optional<Model> model_from_zoo(std::string_view name) {
  const auto& models = zoo();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const Model& m) { return plain(m.name) == plain(name); });
  if (found == models.end()) return std::nullopt;
  return *found;
}

}  // namespace medley::model
