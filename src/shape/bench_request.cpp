#include "shape/bench_request.hpp"

#include "cost/gemm_csv.hpp"
#include "shape/sweep.hpp"

namespace medley::shape {

std::vector<Gemm> bench_gemms(const BenchRequest& request) {
  if (!request.gemms.empty()) return read_gemm_csv(request.gemms);
  return calibration_gemms(request.quick ? 4000 : 40000);
}

BenchWork bench_work(const BenchRequest& request) {
  BenchWork work;
  for (const Gemm& gemm : bench_gemms(request)) {
    ++work.products;
    work.flops += gemm.flops();
  }
  return work;
}

}  // namespace medley::shape
