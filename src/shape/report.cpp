#include "shape/report.hpp"

#include "shape/capacity.hpp"

namespace medley::shape {

ShapeReport report_shape(const ShapeRequest& request) {
  ShapeReport report{.model = {},
                     .work = {},
                     .gpu = GpuModel::named(request.gpu),
                     .operators = {},
                     .lost = {},
                     .step = {},
                     .rules = {},
                     .advice = {},
                     .combined = {}};
  const GpuModel& gpu = report.gpu;
  const Model& model = report.model = shape_model(request.model, request.as);
  const Workload& work = report.work = workload_of(request, model);
  report.parameters = plan::count_parameters(model).total;
  Pricer pricer(gpu);
  report.operators = price_operators(gpu, model, work);
  for (const PricedOperator& p : report.operators)
    if (p.is_gemm()) report.products_us += p.us * double(p.times);
  report.lost = by_cause(total_losses(report.operators));
  report.step = step_time(pricer, model, work);
  report.rules = check_rules(pricer, model, work);
  const std::vector<Advice> advice = advise(pricer, model, work);
  for (const Advice& a : advice)
    report.advice.push_back({a, double(plan::count_parameters(a.change.model).total) / double(report.parameters) - 1});
  report.combined = apply(pricer, model, work, advice);
  report.memory = memory_bytes(model, work);
  report.usable_memory = usable_bytes(gpu.gpu());
  report.largest_micro_batch = largest_micro_batch(gpu.gpu(), model, work);
  return report;
}

}  // namespace medley::shape
