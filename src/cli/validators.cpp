// Checks of what a user typed, each refusing it with a sentence that names the value and what would be right.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <medley/error.hpp>
#include <string>
#include <vector>

#include "base/closest.hpp"
#include "base/split.hpp"
#include "cli/command.hpp"
#include "comm/backend_loader.hpp"

namespace medley::cli {
namespace {

bool is_known(const std::string& backend) {
  if (backend == "auto") return true;
  // A pair such as shm+mpi, or a split such as shm|ucx
  const auto parts = split(backend, backend.find('|') == std::string::npos ? '+' : '|');
  return !parts.empty() && parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return core::find_backend(part) != nullptr;
  });
}

}  // namespace

CLI::Validator positive() {
  return CLI::Validator(
      [](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool right = end != text.c_str() && *end == '\0' && value > 0;
        return right ? std::string() : fmt::format("\"{}\" is not a number above 0", text);
      },
      "POSITIVE");
}

CLI::Validator known_backends() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool parse_only = std::getenv("MEDLEY_PARSE_ONLY");  // documents name plugins that are not here
        for (const std::string& backend : split(text, ',')) {
          if (parse_only || is_known(backend)) continue;
          std::vector<std::string> names;
          for (const auto& known : core::known_backends()) names.push_back(known->name());
          return fmt::format("\"{}\" is not a backend{}; there are {}", backend, did_you_mean(backend, names),
                             fmt::join(names, ", "));
        }
        return std::string();
      },
      "");
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words.front().starts_with("-")) return;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == words.front()) return;
  throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a command{}; see medley --help", words.front(),
                                              did_you_mean(words.front(), command_names(app))));
}

std::string unexpected_words(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = "medley";
  for (auto below = command->get_subcommands(); !below.empty(); below = command->get_subcommands()) {
    command = below.front();
    name += " " + command->get_name();
  }
  const std::vector<std::string> extra = app.remaining(true);
  if (extra.empty()) return "";
  const std::string word = extra.front().substr(0, extra.front().find('='));
  std::vector<std::string> known = command_names(*command);
  if (word.starts_with("-")) {
    known.clear();
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;  // hidden
      for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
    }
  }
  return fmt::format("{} knows no {} {}{}; see {} --help", name, word.starts_with("-") ? "option" : "word", word,
                     did_you_mean(word, known), name);
}

}  // namespace medley::cli
