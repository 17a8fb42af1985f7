#include "plan/against.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "model/text.hpp"

namespace medley::plan {

AgainstResult compare_with_list(const AgainstRequest& request) {
  const Framework framework = framework_of(request);
  if (framework != Framework::megatron && framework != Framework::deepspeed) {
    throw Error(ErrorKind::invalid,
                fmt::format("--against needs --framework megatron or deepspeed, the frameworks AICB mocks; it is {}",
                            request.framework));
  }
  const Model model = model_of(request);
  Layout layout = layout_of(request);
  check(layout, model);
  const Schedule schedule = make_schedule(model, layout, framework, request.rank);
  const AicbList list = read_aicb(read_file(request.list), request.list, coordinates(layout, request.rank).pp);
  return {request.list, request.rank, compare_with_aicb(model, layout, framework, request.rank, schedule, list)};
}

nlohmann::ordered_json to_json(const AgainstResult& result) {
  using Json = nlohmann::ordered_json;
  Json differences = Json::array();
  for (const Difference& d : result.comparison.differ) {
    differences.push_back({{"purpose", d.purpose},
                           {"plan", text_of(d.ours)},
                           {"list", text_of(d.theirs)},
                           {"cause", d.cause.empty() ? Json() : Json(d.cause)}});
  }
  return {{"list", result.list},
          {"rank", result.rank},
          {"explained", result.comparison.explained()},
          {"agree", result.comparison.agree},
          {"differences", std::move(differences)},
          {"notes", result.comparison.notes}};
}

}  // namespace medley::plan
