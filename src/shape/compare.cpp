#include "shape/compare.hpp"

#include <algorithm>
#include <medley/error.hpp>

#include "model/text.hpp"
#include "shape/capacity.hpp"
#include "shape/losses.hpp"

namespace medley::shape {
namespace {

ComparedShape compared(const ShapeRequest& request, const Model& model, const GpuModel& gpu) {
  ComparedShape row{.model = model.name,
                    .gpu = gpu.gpu().name,
                    .calibrated = gpu.calibrated(),
                    .parameters = plan::count_parameters(model).total};
  try {
    const Workload work = workload_of(request, model);
    Pricer pricer(gpu);
    row.step = step_time(pricer, model, work);
    const auto lost = by_cause(total_losses(price_operators(gpu, model, work)));
    row.lost_to = std::ranges::max_element(lost, {}, [](const auto& cause) { return cause.second; })->first;
    row.fits = fits(gpu.gpu(), model, work);
    row.largest_micro_batch = largest_micro_batch(gpu.gpu(), model, work);
  } catch (const Error& error) {
    row.step.reset();
    row.refused = error.what();
  }
  return row;
}

/// a,b is two models; h=2560,a=32,… is one, and so is a file with a comma in its name.
std::vector<std::string> models_of(const std::vector<std::string>& given) {
  std::vector<std::string> models;
  for (const std::string& text : given) {
    const bool one = text.find('=') != std::string::npos || model::is_file(text);
    for (const std::string& name : one ? std::vector{text} : model::split(text, ',')) models.push_back(name);
  }
  return models;
}

nlohmann::ordered_json compared_json(const ComparedShape& row) {
  nlohmann::ordered_json json{
      {"model", row.model}, {"gpu", row.gpu}, {"calibrated", row.calibrated}, {"parameters", double(row.parameters)}};
  if (!row.step) {
    json["refused"] = row.refused;
    return json;
  }
  json.update({{"layer_us", row.step->layer_us},
               {"step_us", row.step->step_us},
               {"tokens_per_s_per_gpu", row.step->tokens_per_s},
               {"tflops_per_gpu", row.step->tflops},
               {"efficiency", row.step->efficiency},
               {"lost_to", row.lost_to},
               {"fits", row.fits},
               {"largest_micro_batch", row.largest_micro_batch},
               {"against_first", row.against_first}});
  return json;
}

}  // namespace

CompareResult compare_shapes(const CompareRequest& request) {
  const std::vector<std::string> models = models_of(request.models);
  if (models.empty()) throw Error(ErrorKind::invalid, "--model is missing: give one, or several with commas");
  if (request.gpus.empty()) throw Error(ErrorKind::invalid, "--gpu is missing: give one, or several with commas");
  CompareResult result;
  for (const auto& name : models)
    for (const auto& gpu : request.gpus)
      result.rows.push_back(compared(request, shape_model(name, request.as), GpuModel::named(gpu)));
  const auto first = std::ranges::find_if(result.rows, [](const auto& row) { return row.step.has_value(); });
  if (first == result.rows.end()) throw Error(ErrorKind::invalid, result.rows.front().refused);
  for (ComparedShape& row : result.rows)
    if (row.step) row.against_first = row.step->tokens_per_s / first->step->tokens_per_s;
  return result;
}

nlohmann::ordered_json to_json(const CompareResult& result) {
  auto rows = nlohmann::ordered_json::array();
  for (const ComparedShape& row : result.rows) rows.push_back(compared_json(row));
  return {{"rows", std::move(rows)}};
}

}  // namespace medley::shape
