// Prints the name and the cores of each thread of a rank that uses the given backend: "main 10",
// "medley-control 11". Run by the launcher's tests.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

/// From /proc/self/task/N/status: the text after "Name:\t" and the like.
std::string field(const std::filesystem::path& task, const std::string& name) {
  std::ifstream file(task / "status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

/// "0-1,4" as the digits of core_mask(): "11001".
std::string digits(const std::string& list) {
  std::string mask;
  const char* at = list.c_str();
  for (int first = 0, last = 0, read = 0; std::sscanf(at, "%d%n", &first, &read) == 1;) {
    at += read;
    last = first;
    if (*at == '-' && std::sscanf(at + 1, "%d%n", &last, &read) == 1) at += 1 + read;
    mask.resize(static_cast<std::size_t>(last) + 1, '0');
    for (int core = first; core <= last; ++core) mask[static_cast<std::size_t>(core)] = '1';
    if (*at == ',') ++at;
  }
  return mask;
}

}  // namespace

int main(int, char** argv) {
  medley::Context context(std::vector<std::string>{argv[1]});
  std::vector<float> one(1, 1.0f);
  context.world().all_reduce(one, medley::sum);  // libraries have started their threads by now
  std::string lines;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const bool main = task.path().filename() == std::to_string(getpid());
    lines += (main ? "main" : field(task, "Name")) + " " + digits(field(task, "Cpus_allowed_list")) + "\n";
  }
  context.world().barrier();
  std::fputs(lines.c_str(), stdout);
}
