// medley completion: completion scripts for bash, zsh and fish, made from the same description that parses the command
// line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <medley/error.hpp>

#include "cli/command.hpp"
#include "comm/backend_loader.hpp"
#include "cost/machine.hpp"
#include "model/zoo.hpp"

namespace medley::cli {
namespace {

/// One command as a completion script needs it.
struct Completable {
  std::string path;                                          ///< "shape search"; empty: medley itself
  std::vector<std::string> commands, options, descriptions;  ///< descriptions: of the options
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void collect(const CLI::App& app, const std::string& path, std::vector<Completable>& entries) {
  Completable entry{path, command_names(app), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) {
      entry.options.push_back("--" + name);
      entry.descriptions.push_back(first_line(option->get_description()));
    }
  }
  entries.push_back(entry);
  for (const std::string& name : entry.commands)
    collect(*app.get_subcommand(name), path.empty() ? name : path + " " + name, entries);
}

/// What can follow an option: names that the library knows.
std::map<std::string, std::vector<std::string>> values() {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& model : model::zoo()) out["--model"].push_back(model.name);
  for (const cost::Gpu& gpu : cost::all_gpus()) out["--gpu"].push_back(gpu.name);
  for (const std::string_view machine : cost::machine_names()) out["--machine"].emplace_back(machine);
  for (const auto& backend : core::known_backends()) out["--backends"].push_back(backend->name());
  out["--backends"].emplace_back("auto");
  for (int i = 0; i < op_count; ++i) out["--op"].emplace_back(name(static_cast<Op>(i)));
  out["--framework"] = {"textbook", "megatron", "deepspeed", "neox", "ddp", "fsdp1", "fsdp2", "nanotron"};
  out["--memory"] = {"host", "cuda"};
  out["--mix"] = {"moe", "dlrm", "dense", "all"};
  return out;
}

/// Words that follow a command itself.
std::vector<std::string> arguments_of(const std::string& path) {
  if (path == "list") return {"models", "gpus", "machines", "backends", "ops"};
  if (path == "completion") return {"bash", "zsh", "fish"};
  if (path == "help") return {"environment", "exit-status", "launching", "layout", "routes", "sizes"};
  return {};
}

std::string bash_script(const std::vector<Completable>& entries) {
  std::string text =
      "# bash completion for medley: source <(medley completion bash)\n"
      "_medley() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words=\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${path:+$path }$word\" in\n      ";
  for (const Completable& entry : entries)
    if (!entry.path.empty()) text += fmt::format("'{}'|", entry.path);
  text.back() = ')';
  text += " path=\"${path:+$path }$word\" ;;\n    esac\n  done\n  case $previous in\n";
  for (const auto& [option, names] : values())
    text += fmt::format("    {}) COMPREPLY=($(compgen -f -W '{}' -- \"$current\")); return ;;\n", option,
                        fmt::join(names, " "));
  text += "  esac\n  case $path in\n";
  for (const Completable& entry : entries) {
    std::vector<std::string> words = entry.commands;
    const auto more = arguments_of(entry.path);
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), entry.options.begin(), entry.options.end());
    text += fmt::format("    '{}') words='{}' ;;\n", entry.path, fmt::join(words, " "));
  }
  return text +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ ${#COMPREPLY[@]} -gt 0 || $current == -* ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _medley medley\n";
}

/// zsh runs bash's completion functions.
std::string zsh_script(const std::vector<Completable>& entries) {
  return "# zsh completion for medley: source <(medley completion zsh)\n"
         "autoload -Uz compinit bashcompinit && compinit -u && bashcompinit\n" +
         bash_script(entries);
}

std::string quoted(std::string text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish_script(const std::vector<Completable>& entries) {
  std::string text = "# fish completion for medley: medley completion fish | source\ncomplete -c medley -e\n";
  const auto known = values();
  for (const Completable& entry : entries) {
    // At a command: all words of its path were given, and none of the commands below it.
    std::string at;
    std::string rest = entry.path;
    while (!rest.empty()) {
      const std::size_t space = rest.find(' ');
      at += fmt::format("{}__fish_seen_subcommand_from {}", at.empty() ? "" : "; and ", rest.substr(0, space));
      rest = space == std::string::npos ? "" : rest.substr(space + 1);
    }
    std::string before = at;
    if (!entry.commands.empty())
      before += fmt::format("{}not __fish_seen_subcommand_from {}", at.empty() ? "" : "; and ",
                            fmt::join(entry.commands, " "));
    std::vector<std::string> words = entry.commands;
    for (const std::string& word : arguments_of(entry.path)) words.push_back(word);
    if (!words.empty())
      text += fmt::format("complete -c medley -f -n {} -a {}\n", quoted(before),
                          quoted(fmt::format("{}", fmt::join(words, " "))));
    for (std::size_t i = 0; i < entry.options.size(); ++i) {
      const auto names = known.find(entry.options[i]);
      text += fmt::format("complete -c medley -n {} -l {} -d {}{}\n", quoted(before.empty() ? "true" : before),
                          entry.options[i].substr(2), quoted(entry.descriptions[i]),
                          names == known.end()
                              ? ""
                              : fmt::format(" -r -a {}", quoted(fmt::format("{}", fmt::join(names->second, " ")))));
    }
  }
  return text;
}

int print_completion(const CLI::App& app, const std::string& shell) {
  std::vector<Completable> entries;
  collect(app, "", entries);
  fmt::print("{}", shell == "bash"  ? bash_script(entries)
                   : shell == "zsh" ? zsh_script(entries)
                                    : fish_script(entries));
  return 0;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      add_command(app, "completion", "A script with which a shell completes medley's commands, options and names",
                  "source <(medley completion bash)      # in ~/.bashrc\n"
                  "  source <(medley completion zsh)       # in ~/.zshrc\n"
                  "  medley completion fish | source       # in ~/.config/fish/config.fish",
                  [shell, &app] { return print_completion(app, *shell); });
  one_of(completion->add_option("SHELL", *shell, "Shell: bash, zsh or fish")->required(), {"bash", "zsh", "fish"});
}

}  // namespace medley::cli
