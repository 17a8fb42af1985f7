// Commands, options and words that nobody knows: refusing them with the one that is spelled most like them.
#include <fmt/format.h>

#include <medley/error.hpp>
#include <string>
#include <vector>

#include "base/closest.hpp"
#include "cli/command.hpp"

namespace medley::cli {

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
