#include "bootstrap/ancestor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace medley {
namespace {

struct Status {
  std::string command;
  long parent = 0;
  std::string started;
};

// /proc/PID/stat: "pid (command) state ppid … starttime …"; the command may contain spaces and parentheses.
Status read_status(long pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t open = line.find('('), close = line.rfind(')');
  if (open == line.npos || close == line.npos) return {};
  std::istringstream rest(line.substr(close + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  if (fields.size() < 20) return {};
  return {line.substr(open + 1, close - open - 1), std::stol(fields[1]), fields[19]};
}

}  // namespace

std::string ancestor_identity(const std::string& command) {
  for (long pid = getppid(); pid > 1;) {
    const Status status = read_status(pid);
    if (status.command == command) return fmt::format("{} {} {}", command, pid, status.started);
    pid = status.parent;
  }
  return "";
}

}  // namespace medley
