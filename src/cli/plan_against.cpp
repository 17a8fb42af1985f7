// medley plan --against LIST.csv: a plan beside an AICB workload; every difference is stated with its cause.
#include <fmt/format.h>

#include <medley/error.hpp>

#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "model/read_layout.hpp"
#include "plan/aicb.hpp"

namespace medley::cli {

int run_against(const PlanRequest& request) {
  const plan::Framework framework = framework_of(request);
  if (framework != plan::Framework::megatron && framework != plan::Framework::deepspeed) {
    throw Error(
        ErrorKind::invalid,
        fmt::format("--against needs --framework megatron or deepspeed, the frameworks AICB mocks; it is {}",
                    request.framework));
  }
  const plan::Count rank = request.rank.empty() ? 0 : plan::parse_count(request.rank, "--rank", "rank");
  const PlanOutcome outcome = make_plan(model_of(request), layout_of(request), framework, rank);
  const int stage = plan::coordinates(outcome.layout, outcome.rank).pp;
  const plan::AicbList list = plan::read_aicb(plan::read_file(request.against), request.against, stage);
  const plan::Comparison result =
      plan::compare_with_aicb(outcome.model, outcome.layout, framework, outcome.rank, outcome.schedule, list);

  nlohmann::ordered_json json = {{"list", request.against},
                                 {"rank", outcome.rank},
                                 {"explained", result.explained()},
                                 {"agree", result.agree},
                                 {"differences", nlohmann::ordered_json::array()},
                                 {"notes", result.notes}};
  for (const plan::Difference& d : result.differ) {
    json["differences"].push_back({{"purpose", d.purpose},
                                   {"plan", plan::text_of(d.ours)},
                                   {"list", plan::text_of(d.theirs)},
                                   {"cause", d.cause.empty() ? nullptr : nlohmann::ordered_json(d.cause)}});
  }
  write_json(request.json, json);
  if (request.json != "-") {
    fmt::print("rank {} of the plan against {}\n\nthe same in operation, group, bytes and count: {}\n",
               outcome.rank, request.against,
               result.agree.empty() ? "nothing" : fmt::format("{}", fmt::join(result.agree, ", ")));
    for (const plan::Difference& d : result.differ) {
      fmt::print("\n{}\n  plan:  {}\n  list:  {}\n  cause: {}\n", d.purpose, plan::text_of(d.ours),
                 plan::text_of(d.theirs), d.cause.empty() ? "NOT EXPLAINED" : d.cause);
    }
    if (!result.notes.empty()) fmt::print("\n");
    for (const std::string& note : result.notes) fmt::print("note: {}\n", note);
    fmt::print("\n{}\n",
               result.explained() ? "every difference has a cause" : "some differences have no cause");
  }
  return result.explained() ? 0 : 1;
}

}  // namespace medley::cli
