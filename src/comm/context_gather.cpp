// The exchange that makes comms: an all-gather of strings over the control links, while the engine keeps making
// progress.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ranks_text.hpp"
#include "comm/context_state.hpp"

namespace medley::core {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto gather_check_interval = 20ms;  // how soon a lost member is noticed
// A member may leave because another one died, which this rank hears of later
constexpr auto late_loss_grace = 300ms;
constexpr auto gather_nap = 100us;        // while something is pending that needs polling
constexpr auto who_called_limit = 400ms;  // for ranks that are alive to report whether they called

}  // namespace

std::vector<std::string> ContextState::gather(const std::string& name, const std::string& purpose,
                                              const std::vector<int>& members, const std::string& mine, Deadline until,
                                              CommState* parent) {
  const auto own = static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
  if (members.size() == 1) return {mine};
  const auto gathering = std::make_shared<control::Gathering>(name, members, own, mine);
  control_->start(gathering);
  try {
    // Not at once: a check asks the kernel about every member of the parent, and most exchanges finish earlier.
    Deadline left_since{};
    for (Deadline next_check = steady_clock::now() + gather_check_interval;;) {
      if (gathering->done()) return gathering->all();
      const Deadline now = steady_clock::now();
      if (now > until) {
        control_->ask_who_called(*gathering);
        const std::vector<int> missing = gathering->not_called(who_called_limit);
        throw Error(ErrorKind::timeout,
                    fmt::format("{}: {} did not take part within the deadline", purpose,
                                missing.empty() ? "somebody" : ranks_text(missing)),
                    {.comm = parent ? parent->name : name, .ranks = missing});
      }
      if (now >= next_check) {
        if (parent) engine->check(*parent);
        check_members(members, purpose, left_since);
        next_check = now + gather_check_interval;
      }
      engine->progress();
      gathering->wait_until(
          std::min(until, now + (engine->idle() ? std::chrono::nanoseconds(gather_check_interval) : gather_nap)));
    }
  } catch (...) {
    control_->abandon(name);
    throw;
  }
}

void ContextState::check_members(const std::vector<int>& members, const std::string& purpose,
                                 Deadline& left_since) const {
  using Standing = control::Control::Standing;
  const auto gone = [&](std::size_t place, const char* how) {
    return Error(ErrorKind::rank_lost, fmt::format("{}: rank {} {}", purpose, place, how),
                 {.ranks = {static_cast<int>(place)}});
  };
  std::optional<std::size_t> left;
  for (std::size_t place = 0; place < members.size(); ++place) {
    const Standing standing = control_->standing(members[place]);
    if (standing == Standing::present) continue;
    if (standing != Standing::left) throw gone(place, "was lost");
    if (!left) left = place;
  }
  if (!left) return;
  const Deadline now = steady_clock::now();
  if (left_since == Deadline{}) left_since = now;
  if (now - left_since >= late_loss_grace) throw gone(*left, "has left the job");
}

}  // namespace medley::core
