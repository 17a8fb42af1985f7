// Decisions about routes in the running job, in words: for records, the API and stderr.
#include <fmt/format.h>

#include "engine/online_routes.hpp"

namespace medley::core {
namespace {

using route::TrialCause;
using route::TrialOutcome;

std::string time_text(std::int64_t ns) {
  const double us = static_cast<double>(ns) / 1000;
  return us < 1000  ? fmt::format("{:.3g} us", us)
         : us < 1e6 ? fmt::format("{:.3g} ms", us / 1000)
                    : fmt::format("{:.3g} s", us / 1e6);
}

std::string cause_text(const OnlineDecision& news) {
  const TrialOutcome& decision = news.decision;
  switch (decision.cause) {
    case TrialCause::unsure: return "the table could not tell which is faster";
    case TrialCause::unlike_table:
      return fmt::format("{} took {}, {} by the table", news.from, time_text(decision.seen_ns),
                         time_text(decision.before_ns));
    case TrialCause::drift:
      return fmt::format("{} took {}, usually {}", news.from, time_text(decision.seen_ns),
                         time_text(decision.before_ns));
    case TrialCause::recheck: return "the table's choice was measured again";
    case TrialCause::shuffle: break;
  }
  return {};
}

}  // namespace

std::string reason_of(const OnlineDecision& news) {
  const TrialOutcome& decision = news.decision;
  if (decision.result == TrialOutcome::Result::reverted) {
    return fmt::format(
        "with {} the job took {:.2f} times as long", news.from,
        static_cast<double>(decision.to_ns) / static_cast<double>(std::max<std::int64_t>(1, decision.from_ns)));
  }
  std::string text = cause_text(news);
  if (decision.measured > 0) {
    text += fmt::format("; {} took {} where {} took {}, and was clearly faster in {} of {} measurements", news.to,
                        time_text(decision.to_ns), news.from, time_text(decision.from_ns), decision.faster,
                        decision.measured);
  }
  return text;
}

}  // namespace medley::core
