#include "bootstrap/launch_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace medley {
namespace {

constexpr std::size_t longest_line = std::size_t{16} << 20;

bool write_out(int target, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(target, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // another process made the terminal non-blocking
      pollfd entry{target, POLLOUT, 0};
      poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// The position after the first line of `text`; npos when the line is incomplete. A trailing "\r"
// may be half of "\r\n".
std::size_t end_of_line(std::string_view text, std::size_t from) {
  const std::size_t end = text.find_first_of("\r\n", from);
  if (end == text.npos || text[end] == '\n') return end == text.npos ? end : end + 1;
  if (end + 1 == text.size()) return text.npos;
  return text[end + 1] == '\n' ? end + 2 : end + 1;
}

}  // namespace

bool LineCarrier::feed(std::string_view bytes) {
  // Earlier bytes contain no line end, except perhaps a trailing "\r".
  std::size_t from = line_.empty() ? 0 : line_.size() - 1;
  line_ += bytes;
  std::string out;
  std::size_t start = 0;
  for (std::size_t end = 0; (end = end_of_line(line_, from)) != line_.npos; from = start = end) {
    out.append(prefix_).append(line_, start, end - start);
  }
  line_.erase(0, start);
  if (line_.size() > longest_line) {
    out.append(prefix_).append(line_).push_back('\n');
    line_.clear();
  }
  return write_out(target_, out);
}

bool LineCarrier::finish() {
  if (line_.empty()) return true;
  std::string out = prefix_ + line_;
  if (out.back() != '\r') out.push_back('\n');
  line_.clear();
  return write_out(target_, out);
}

}  // namespace medley
