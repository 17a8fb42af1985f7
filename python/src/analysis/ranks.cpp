// The functions of medley._analysis that run on the ranks of a job: bench, tune, replay. Each joins the job that this process belongs
// to; medley/measure.py starts ranks where there is none. Making a request checks it, before any rank starts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <variant>

#include "analysis.hpp"
#include "bootstrap/environment.hpp"
#include "replay/replayed_step.hpp"
#include "replay/replay_job.hpp"
#include "replay/trace_folder.hpp"
#include "tune/bench_job.hpp"
#include "tune/check_request.hpp"
#include "tune/sizes.hpp"
#include "tune/tune_job.hpp"
#include "tune/words.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {
namespace {

/// Measuring binds the thread to a core and sets MEDLEY_TRACE; this gives the caller both back as they were.
class CallersOwn {
 public:
  CallersOwn() {
    sched_getaffinity(0, sizeof cores_, &cores_);
    if (const char* value = getenv("MEDLEY_TRACE")) trace_ = value;
  }
  ~CallersOwn() {
    sched_setaffinity(0, sizeof cores_, &cores_);
    trace_ ? setenv("MEDLEY_TRACE", trace_->c_str(), 1) : unsetenv("MEDLEY_TRACE");
  }
  CallersOwn(const CallersOwn&) = delete;
  CallersOwn& operator=(const CallersOwn&) = delete;

 private:
  cpu_set_t cores_{};
  std::optional<std::string> trace_;
};

std::optional<std::tuple<int, int, std::string>> place() {
  const auto found = find_place(process_environment());
  if (!found) return std::nullopt;
  return std::tuple(found->rank, found->size, std::string(name(found->source)));
}

tune::BenchRequest bench_request(const std::string& ops, const std::string& sizes, const std::vector<std::string>& backends,
                                 const std::vector<std::string>& algorithms, const std::string& counts,
                                 const std::string& dtype, const std::string& memory, const std::string& table,
                                 const std::vector<std::string>& mixes, double seconds, int batch) {
  tune::BenchRequest request{.options = {}, .table = table, .mixes = mixes};
  tune::BenchOptions& options = request.options;
  options.ops = tune::ops_of(ops);
  const auto [first, last] = tune::parse_size_range(sizes);
  options.sizes = tune::size_ladder(first, last);
  options.wanted.backends = backends;
  options.wanted.every_algorithm = algorithms == std::vector<std::string>{"all"};
  if (!options.wanted.every_algorithm) options.wanted.algorithms = algorithms;
  if (counts != "uniform" && counts != "skewed" && counts != "both")
    throw Error(ErrorKind::invalid, "\"" + counts + "\" is not a kind of counts: uniform, skewed or both");
  if (counts != "uniform") options.counts = {tune::Counts::skewed};
  if (counts == "both") options.counts = {tune::Counts::uniform, tune::Counts::skewed};
  options.dtype = tune::dtype_of_word(dtype);
  options.memory = tune::memory_of_word(memory);
  options.seconds = seconds;
  options.batch = batch;
  if (mixes == std::vector<std::string>{"all"})
    request.mixes.assign(std::begin(tune::mix_names), std::end(tune::mix_names));
  tune::check_mixes(request.mixes);
  tune::check(request);
  return request;
}

std::string run_bench(const tune::BenchRequest& request, nb::handle progress) {
  const Progress tell(progress);
  const nb::gil_scoped_release released;
  const CallersOwn restored;
  const auto result = tune::run_bench(request, {.begin = [](const tune::BenchJob&) {},
                                                .progress = [&](std::size_t done, std::size_t of) {
                                                  tell(static_cast<double>(done), static_cast<double>(of), "cells");
                                                }});
  return std::visit([](const auto& rows) { return text_of(tune::to_json(rows)); }, result);
}

tune::TuneRequest tune_request(const std::string& file, const std::string& schedule, const std::string& ops,
                               const std::string& sizes, const std::vector<std::string>& backends,
                               const std::vector<std::string>& dtypes, const std::string& memory, double seconds, int ranks,
                               bool replace) {
  tune::TuneRequest request{.options = {}, .file = file};
  tune::TuneOptions& options = request.options;
  options.ops = tune::ops_of(ops);
  const auto [first, last] = tune::parse_size_range(sizes);
  options.sizes = tune::size_ladder(first, last);
  options.backends = backends;
  options.memory = tune::memory_of_word(memory);
  options.seconds = seconds;
  options.dtypes.clear();
  for (const std::string& word : dtypes) options.dtypes.push_back(tune::dtype_of_word(word));
  if (!schedule.empty()) {
    replay::tune_for(schedule, {.tflops = 100}, ranks, request);
  } else if (options.dtypes.empty()) {
    throw Error(ErrorKind::invalid, "dtype lists no element type");
  }
  request.file = tune::table_file(request);
  request.replace = replace;
  if (!place()) tune::check(request);   // a launcher's ranks find errors together
  return request;
}

/// What the callback raises, a KeyboardInterrupt among it, ends tuning in good order: the table is saved first.
std::string run_tune(const tune::TuneRequest& request, nb::handle progress) {
  const Progress tell(progress), listen{nb::handle(Py_None)};   // listen: for Ctrl-C alone
  const nb::gil_scoped_release released;
  const CallersOwn restored;
  std::exception_ptr raised;
  const auto keep = [&](const auto& call) {
    try {
      if (!raised) call();
    } catch (...) {
      raised = std::current_exception();
    }
  };
  const tune::TuneResult result =
      tune::run_tune(request, {.progress =
                                   [&](const tune::TuneProgress& now) {
                                     keep([&] { tell(std::min(now.seconds, request.options.seconds), request.options.seconds, now.now); });
                                   },
                               .stop =
                                   [&] {
                                     keep([&] { listen(0, 0); });
                                     return raised != nullptr;
                                   }});
  if (raised) std::rethrow_exception(raised);
  nlohmann::ordered_json out = tune::to_json(result);
  out["file"] = result.file.string();
  out["hash"] = result.table.hash();
  out["new_cells"] = result.new_cells;
  return text_of(out);
}

replay::ReplayRequest replay_request(const std::string& schedule, const std::vector<std::string>& backends,
                                     const std::string& table, const std::string& folder, int steps, bool calibrate,
                                     double scale, double tflops, double memory_gbs, int ranks) {
  replay::ReplayRequest request{.schedule = schedule,
                                .backends = backends,
                                .table = table,
                                .folder = folder,
                                .steps = steps,
                                .calibrate = calibrate};
  request.options.scale = scale;
  request.options.tflops = tflops;
  request.options.memory_gbs = memory_gbs;
  if (steps < 1) throw Error(ErrorKind::invalid, "steps must be at least 1");
  replay::check_replay(request, ranks);
  return request;
}

std::string run_replay(replay::ReplayRequest request, nb::handle progress) {
  const Progress tell(progress);
  request.progress = [&](int done, int of) { tell(done, of, "rounds"); };
  const nb::gil_scoped_release released;
  const CallersOwn restored;
  const replay::TraceFolder folder(request.folder.string());   // a temporary one where none is named
  request.folder = folder.path();
  return text_of(replay::to_json(replay::run_replay(request)));
}

}  // namespace

void bind_ranks(nb::module_& module) {
  module.def("place", place, "This process's rank, the number of ranks and their launcher; None without one.");
  nb::class_<tune::BenchRequest>(module, "BenchRequest", "The options of medley.bench.");
  nb::class_<tune::TuneRequest>(module, "TuneRequest", "The options of medley.tune.");
  nb::class_<replay::ReplayRequest>(module, "ReplayRequest", "The options of medley.replay.");
  module.def("bench_request", bench_request, "op"_a, "sizes"_a, "backends"_a, "algorithms"_a, "counts"_a, "dtype"_a, "memory"_a,
             "table"_a, "mix"_a, "seconds"_a, "batch"_a);
  module.def("bench", run_bench, "request"_a, "progress"_a.none());
  module.def("tune_request", tune_request, "output"_a, "schedule"_a, "op"_a, "sizes"_a, "backends"_a, "dtype"_a, "memory"_a,
             "seconds"_a, "ranks"_a, "replace"_a);
  module.def("tune", run_tune, "request"_a, "progress"_a.none());
  module.def("replay_request", replay_request, "schedule"_a, "backends"_a, "table"_a, "trace"_a, "steps"_a, "calibrate"_a,
             "scale"_a, "tflops"_a, "memory_gbs"_a, "ranks"_a);
  module.def("replay", run_replay, "request"_a, "progress"_a.none());
}

}  // namespace medley::python
