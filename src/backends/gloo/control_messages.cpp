// Control: lost ranks, missing ranks, and how a rank closes a comm in order.
#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/may_block.hpp>
#include <nlohmann/json.hpp>

#include "backends/gloo/no_pipe_signal.hpp"
#include "backends/gloo/tag_matcher.hpp"

namespace medley::gloo_backend {
namespace {

using namespace std::chrono_literals;

// What was sent must have arrived before the connections close. Peers answer from their own reader thread, so only a
// stopped or unreachable one lets this time out.
constexpr auto farewell_limit = 5000ms;
constexpr auto abort_limit = 200ms;
// How long after a Gloo error the readers may take to learn whose connection it was.
constexpr auto explanation_limit = 500ms;

std::string written(const Error& why) {
  constexpr std::size_t most = payload_bytes / 2;  // the ranks and JSON's own signs take the rest
  std::vector<int> ranks = why.context().ranks;
  ranks.resize(std::min<std::size_t>(ranks.size(), 256));
  const nlohmann::json note{{"ranks", ranks}, {"why", std::string(why.what()).substr(0, most)}};
  return note.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, payload_bytes);
}

}  // namespace

void TagMatcher::close() noexcept {
  const NoPipeSignal quiet;
  say_goodbye(Kind::leaving, nullptr, farewell_limit);
  {
    if (!goodbye_over()) may_block("its peers to hear its goodbye");
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, goodbye_limit_, [this] { return all_heard(); });
  }
  mesh_->sever();
  for (auto& peer : peers_) {
    if (peer && peer->reader.joinable()) peer->reader.join();
  }
}

bool TagMatcher::poll_close() noexcept {
  const NoPipeSignal quiet;
  say_goodbye(Kind::leaving, nullptr, farewell_limit);
  return goodbye_over();
}

bool TagMatcher::goodbye_over() noexcept {
  const std::lock_guard lock(mutex_);
  return all_heard() || std::chrono::steady_clock::now() >= goodbye_limit_;
}

bool TagMatcher::all_heard() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return !peer || peer->heard || peer->left || peer->lost || peer->gave_up;
  });
}

void TagMatcher::throw_if_failed() {
  if (!failed_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (auto error = trouble()) throw *error;
}

void TagMatcher::check() {
  const NoPipeSignal quiet;
  for (auto& peer : peers_) {
    if (peer && mesh_->ended(peer->rank)) lose(*peer);
  }
  {
    const std::lock_guard lock(mutex_);
    if (auto error = trouble()) throw *error;
    if (!question_due()) return;
  }
  for (auto& peer : peers_) {
    if (!peer) continue;
    bool present = false;
    {
      const std::lock_guard lock(mutex_);
      present = !peer->left && !peer->lost && !peer->gave_up;
    }
    if (present) try_post(*peer, {.kind = Kind::where});
  }
}

Error TagMatcher::explain(const char* gloo_says) {
  may_block("the reason of a failure inside Gloo");
  std::unique_lock lock(mutex_);
  std::optional<Error> why;
  changed_.wait_for(lock, explanation_limit, [&] { return stopped_ || (why = trouble()); });
  if (why) return *why;
  if (stopped_) return Error(ErrorKind::aborted, "the lane was aborted");
  return Error(ErrorKind::system, fmt::format("Gloo failed: {}", gloo_says));
}

void TagMatcher::abort(const Error& why) noexcept {
  const NoPipeSignal quiet;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  say_goodbye(Kind::abort, &why, abort_limit);
}

void TagMatcher::say_goodbye(Kind kind, const Error* why, std::chrono::milliseconds limit) noexcept {
  Header header{.kind = kind};
  std::string note;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    goodbye_limit_ = deadline_after(limit);
    header.collectives = doing_.number;
    if (why && failure_) {  // the others get the root cause, not this rank's consequence of it
      header.tag = first_header_.tag;
      header.number = first_header_.number;
      note = first_note_;
    } else if (why) {
      header.tag = static_cast<std::int32_t>(why->kind());
      header.number = static_cast<std::uint64_t>(rank_);
      note = written(*why);
    }
    header.bytes = note.size();
  }
  for (auto& peer : peers_) {
    if (!peer) continue;
    bool present = false;
    {
      const std::lock_guard lock(mutex_);
      present = !peer->left && !peer->lost && !peer->gave_up;
      peer->heard = !present;
    }
    if (present) try_post(*peer, header, std::as_bytes(std::span(note)));
  }
  const std::lock_guard lock(mutex_);
  if (why) {  // the ranks at fault, such as a stopped one, are notified but not awaited
    for (const int at_fault : why->context().ranks) {
      if (at_fault >= 0 && at_fault < static_cast<int>(peers_.size()) && peers_[static_cast<std::size_t>(at_fault)]) {
        peers_[static_cast<std::size_t>(at_fault)]->heard = true;
      }
    }
  }
}

}  // namespace medley::gloo_backend
