#include "control/gathering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <medley/error.hpp>
#include <medley/sdk/may_block.hpp>

namespace medley::control {
namespace {

// Names of abandoned gatherings. Old ones are forgotten, which costs at most the memory of a late message.
constexpr std::size_t most_abandoned = 10'000;
constexpr std::size_t most_ended = 64;

std::string pack(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) {
    const auto length = static_cast<std::uint32_t>(word.size());
    all.append(reinterpret_cast<const char*>(&length), sizeof length).append(word);
  }
  return all;
}

/// Empty where the lengths are inconsistent.
std::vector<std::string> unpack(std::string_view all) {
  std::vector<std::string> words;
  std::uint32_t length = 0;
  while (all.size() >= sizeof length) {
    std::memcpy(&length, all.data(), sizeof length);
    all.remove_prefix(sizeof length);
    if (length > all.size()) return {};
    words.emplace_back(all.substr(0, length));
    all.remove_prefix(length);
  }
  return all.empty() ? words : std::vector<std::string>{};
}

int parse_number_word(const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

int lowest_bit(int place) { return place & -place; }

/// The number of ranks in the subtree rooted at this place.
int subtree(int place, int size) { return place == 0 ? size : std::min(lowest_bit(place), size - place); }

template <class F>
void each_child(int place, int size, F&& visit) {
  for (int distance = 1; place + distance < size && (place == 0 || distance < lowest_bit(place)); distance *= 2)
    visit(place + distance);
}

std::string different_sizes(const std::string& name, int here, int there) {
  return fmt::format("an exchange ({}) among {} ranks met one among {}: ranks called different things", name, here,
                     there);
}

}  // namespace

bool Gathering::wait_until(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (until == std::chrono::steady_clock::time_point{}) return done_;
  may_block("the other ranks of a comm");
  return changed_.wait_until(lock, until, [this] { return done_; });
}

const std::vector<std::string>& Gathering::all() const {
  if (!difference_.empty()) throw Error(ErrorKind::mismatch, difference_);
  return all_;  // written before `done_`, never after
}

std::vector<int> Gathering::not_called(std::chrono::milliseconds limit) {
  may_block("the other ranks of a comm");
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return called_.size() + 1 >= members_.size(); });
  std::vector<int> places;
  for (std::size_t place = 0; place < members_.size(); ++place) {
    const auto said = called_.find(members_[place]);
    if (static_cast<int>(place) != own_ && (said == called_.end() || !said->second))
      places.push_back(static_cast<int>(place));
  }
  return places;
}

void Gathering::finish(std::vector<std::string> all) {
  const std::lock_guard lock(mutex_);
  all_ = std::move(all);
  done_ = true;
  changed_.notify_all();
}

void Gathering::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  difference_ = std::move(why);
  done_ = true;
  changed_.notify_all();
}

void Gathering::note_called(int world_rank, bool called) {
  const std::lock_guard lock(mutex_);
  called_[world_rank] = called;
  changed_.notify_all();
}

Message Gatherings::question(const std::string& name) { return {"gather/ask", pack({name})}; }

void Gatherings::start(std::shared_ptr<Gathering> gathering, std::vector<Outgoing>& out) {
  Part& part = open_[gathering->name_];
  const int size = static_cast<int>(gathering->members_.size());
  part.caller = std::move(gathering);
  if (part.size && *part.size != size) {
    part.caller->fail(different_sizes(part.caller->name_, size, *part.size));
    return end(part.caller->name_);
  }
  part.size = size;
  part.collected.emplace(part.caller->own_, part.caller->mine_);
  advance(part, out);
}

/// Sends completed data on: up the tree or, at the root, down.
void Gatherings::advance(Part& part, std::vector<Outgoing>& out) {
  Gathering& caller = *part.caller;
  const int own = caller.own_, size = *part.size;
  if (part.sent || static_cast<int>(part.collected.size()) < subtree(own, size)) return;
  std::vector<std::string> words{caller.name_, std::to_string(size)};
  if (own != 0) {
    for (auto& [place, text] : part.collected) {
      words.push_back(std::to_string(place));
      words.push_back(std::move(text));
    }
    out.push_back({caller.members_[static_cast<std::size_t>(own & (own - 1))], {"gather/up", pack(words)}});
    part.collected.clear();
    part.sent = true;
    return;
  }
  for (auto& [place, text] : part.collected) words.push_back(std::move(text));
  take_down(words, out);
}

void Gatherings::take_down(const std::vector<std::string>& words, std::vector<Outgoing>& out) {
  const auto found = open_.find(words[0]);
  if (found == open_.end() || !found->second.caller) return;
  const std::shared_ptr<Gathering> caller = found->second.caller;
  if (words.size() != caller->members_.size() + 2) {
    caller->fail(
        different_sizes(words[0], static_cast<int>(caller->members_.size()), static_cast<int>(words.size()) - 2));
    return end(words[0]);
  }
  each_child(caller->own_, static_cast<int>(caller->members_.size()), [&](int child) {
    out.push_back({caller->members_[static_cast<std::size_t>(child)], {"gather/down", pack(words)}});
  });
  caller->finish({words.begin() + 2, words.end()});
  end(words[0]);
}

void Gatherings::take_up(int from, const std::vector<std::string>& words, std::vector<Outgoing>& out) {
  if (abandoned_.contains(words[0])) return;
  Part& part = open_[words[0]];
  const int size = parse_number_word(words[1]);
  if (!part.size) part.size = size;
  if (*part.size != size) {
    const std::string why = different_sizes(words[0], *part.size, size);
    out.push_back({from, {"gather/down", pack({words[0], words[1]})}});  // the sizes differ there too
    if (!part.caller) return;
    part.caller->fail(why);
    return end(words[0]);
  }
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const int place = parse_number_word(words[i]);
    if (place >= 0 && place < size) part.collected.emplace(place, words[i + 1]);
  }
  if (part.caller) advance(part, out);
}

void Gatherings::receive(int from, const Message& message, std::vector<Outgoing>& out) {
  const std::vector<std::string> words = unpack(message.body);
  if (words.empty()) return;
  if (message.kind == "gather/up" && words.size() >= 2) {
    take_up(from, words, out);
  } else if (message.kind == "gather/down" && words.size() >= 2) {
    take_down(words, out);
  } else if (message.kind == "gather/ask") {
    // A gathering that this rank has finished or abandoned is one it had called.
    const auto found = open_.find(words[0]);
    // The asker has called; it may leave
    if (found != open_.end() && found->second.caller) found->second.caller->note_called(from, true);
    const bool called = found != open_.end() ? found->second.caller != nullptr
                                             : abandoned_.contains(words[0]) ||
                                                   std::find(ended_.begin(), ended_.end(), words[0]) != ended_.end();
    out.push_back({from, {"gather/called", pack({words[0], called ? "1" : "0"})}});
  } else if (message.kind == "gather/called" && words.size() == 2) {
    const auto found = open_.find(words[0]);
    if (found != open_.end() && found->second.caller) found->second.caller->note_called(from, words[1] == "1");
  }
}

void Gatherings::end(std::string name) {
  open_.erase(name);
  ended_.push_back(std::move(name));
  if (ended_.size() > most_ended) ended_.pop_front();
}

void Gatherings::abandon(const std::string& name) {
  open_.erase(name);
  if (abandoned_.size() >= most_abandoned) abandoned_.clear();
  abandoned_.insert(name);
}

}  // namespace medley::control
