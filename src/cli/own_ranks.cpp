#include "cli/own_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iterator>
#include <medley/error.hpp>
#include <vector>

#include "bootstrap/environment.hpp"
#include "bootstrap/launch.hpp"
#include "cli/own_backends.hpp"
#include "cli/sizes.hpp"
#include "tune/rank_setup.hpp"

namespace medley::cli {
namespace {

/// This command as it was called.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    words.emplace_back(text.c_str() + at);
    at += words.back().size() + 1;
  }
  words.front() = "/proc/self/exe";
  return words;
}

}  // namespace

int on_ranks(int ranks, const std::string& backends, const std::function<int()>& body) {
  const auto place = find_place(process_environment());
  if (place) {
    if (ranks > 0 && ranks != place->size) {
      throw Error(ErrorKind::invalid, fmt::format("-n {} does not fit the {} ranks that {} started; leave -n out",
                                                  ranks, place->size, name(place->source)));
    }
    if (place->size > 1) note_left_out(backends, place);
    return body();
  }
  check_backends_here(backends);
  if (ranks <= 1) return body();
  note_left_out(backends, place);
  LaunchOptions options;
  options.ranks = ranks;
  options.command = own_command();
  options.backends = fmt::format("{}", fmt::join(tune::without_auto(parse_list(backends)), ","));
  options.prefix = false;
  return launch(options);
}

}  // namespace medley::cli
