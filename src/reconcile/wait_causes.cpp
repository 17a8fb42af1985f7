#include "reconcile/wait_causes.hpp"

#include <algorithm>
#include <numeric>

namespace medley::reconcile {

std::string_view name(WaitCause cause) noexcept {
  constexpr std::array<std::string_view, wait_cause_count> names{"late_rank", "queue",    "order",  "slow",
                                                                 "overlap",   "blocking", "unknown"};
  return names[static_cast<std::size_t>(cause)];
}

double Waits::total() const { return std::accumulate(us_.begin(), us_.end(), 0.0); }

void Waits::add(const Waits& other, double times) {
  for (std::size_t i = 0; i < us_.size(); ++i) us_[i] += times * other.us_[i];
}

std::optional<double> transfer_us(const trace::Event& event, const std::optional<Ready>& last) {
  if (event.completed < 0 || event.begin() < 0 || event.call_only) return std::nullopt;
  const double begin = last ? std::max(event.begin(), last->started) : event.begin();
  return std::max(0.0, event.completed - begin) / 1e3;
}

Waits divide(const trace::Event& event, int rank, const Wait& wait) {
  Waits out;
  const double end = event.completed;
  if (end <= wait.begin) return out;
  double now = wait.begin;
  const auto pass = [&](double until, WaitCause cause) {
    until = std::clamp(until, now, end);
    out[cause] += (until - now) / 1e3;
    now = until;
  };
  if (event.started >= 0) {
    pass(wait.begin + std::min(wait.queued, std::max(0.0, event.started - wait.begin)), WaitCause::queue);
    pass(event.started, WaitCause::order);
  }
  if (wait.last && wait.last->rank != rank) {
    pass(wait.last->called, WaitCause::late_rank);
    pass(wait.last->started, WaitCause::order);  // on the other rank
  }
  if (!wait.expected_us) {
    pass(end, WaitCause::unknown);
    return out;
  }
  // Had the transfer taken as long as predicted, the wait would have been shorter by its excess.
  const double transfer = transfer_us(event, wait.last).value_or(0) * 1e3;
  const double excess = std::min(end - now, std::max(0.0, transfer - *wait.expected_us * 1e3));
  const bool async = event.unknown.has(trace::Field::async) ? event.exposed < event.duration() : event.async;
  pass(end - excess, async ? WaitCause::overlap : WaitCause::blocking);
  pass(end, wait.last ? WaitCause::slow : WaitCause::unknown);
  return out;
}

}  // namespace medley::reconcile
