#include "backends/ucx/exchange.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace medley::ucx {
namespace {

using std::chrono::steady_clock;

class Meeting {
 public:
  Meeting(const Group& group, const std::function<void()>& alive) : group_(group), alive_(alive) {}

  std::string await(const std::string& key, int from) {
    for (;;) {
      if (auto value = group_.store->try_get(key)) return *value;
      const Deadline now = steady_clock::now();
      if (now > group_.deadline) {
        throw Error(ErrorKind::timeout,
                    fmt::format("rank {} did not join comm {} over ucx in time", from, group_.name),
                    {.comm = group_.name, .backend = "ucx", .ranks = {from}});
      }
      if (now > next_look_) {
        alive_();
        next_look_ = now + std::chrono::milliseconds(10);
      }
      group_.progress();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  const Group& group_;
  const std::function<void()>& alive_;
  Deadline next_look_{};
};

/// Strings one after another, each with its length in front.
std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += fmt::format("{}:{}", part.size(), part);
  return text;
}

std::vector<std::string> separate(const std::string& text, int count) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t colon = text.find(':', at);
    const std::size_t length = std::stoul(text.substr(at, colon - at));
    parts.push_back(text.substr(colon + 1, length));
    at = colon + 1 + length;
  }
  parts.resize(static_cast<std::size_t>(count));
  return parts;
}

}  // namespace

std::vector<std::string> exchange(const Group& group, const std::string& mine,
                                  const std::function<void()>& alive) {
  if (group.size == 1) return {mine};
  Meeting meeting(group, alive);
  if (group.rank != 0) {
    group.store->set(fmt::format("from/{}", group.rank), mine);
    return separate(meeting.await("all", 0), group.size);
  }
  std::vector<std::string> all{mine};
  for (int r = 1; r < group.size; ++r) all.push_back(meeting.await(fmt::format("from/{}", r), r));
  group.store->set("all", join(all));
  for (int r = 1; r < group.size; ++r) group.store->erase(fmt::format("from/{}", r));
  return all;
}

}  // namespace medley::ucx
