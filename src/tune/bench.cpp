#include "tune/bench.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "tune/sample_clock.hpp"
#include "tune/sizes.hpp"
#include "tune/workload.hpp"

namespace medley::tune {
namespace {

std::unique_ptr<SampleClock> shared_clock(Comm& world) {
  std::array<std::uint8_t, 64> text{};
  std::unique_ptr<SampleClock> clock;
  if (world.rank() == 0) {
    clock.reset(new SampleClock(SampleClock::create(world.size())));
    std::copy(clock->name().begin(), clock->name().end(), text.begin());
  }
  world.broadcast(text, 0);
  if (!clock) {
    const auto* name = reinterpret_cast<const char*>(text.data());
    clock.reset(new SampleClock(SampleClock::open(name, world.rank(), world.size())));
  }
  clock->meet();
  return clock;
}

struct Cell {
  Op op;
  std::size_t bytes;
  std::string backend;
};

std::vector<Cell> cells_of(const BenchOptions& options, int ranks) {
  std::vector<Cell> cells;
  for (const Op op : options.ops) {
    std::optional<std::size_t> last;
    for (const std::size_t bytes : options.sizes) {
      const std::size_t elements = elements_of(op, bytes, size_of(options.dtype), ranks);
      if (elements == last) continue;   // rounding up made it the row before
      last = elements;
      for (const std::string& backend : options.backends) cells.push_back({op, bytes, backend});
      if (op == Op::barrier) break;
    }
  }
  return cells;
}

}  // namespace

std::vector<BenchRow> bench(Context& context, const BenchOptions& options,
                            const std::function<void(std::size_t, std::size_t)>& progress) {
  Comm world = context.world();
  const auto clock = shared_clock(world);
  const std::vector<Cell> cells = cells_of(options, world.size());
  MeasureOptions measuring;
  measuring.batch = options.batch;
  measuring.seconds = options.seconds > 0 ? options.seconds / static_cast<double>(cells.size()) : 0.1;
  std::vector<BenchRow> rows;
  for (const Cell& cell : cells) {
    Workload workload(world, cell.op, cell.bytes, options.dtype, cell.backend);
    workload.check();
    const Measured measured = measure(*clock, measuring, [&] { workload.dirty(); }, [&] { workload.run(); });
    BenchRow row{.op = cell.op, .backend = cell.backend, .algorithm = "native", .dtype = options.dtype,
                 .bytes = workload.bytes(), .time = summarize(measured.samples_us),
                 .iterations = measured.samples_us.size(), .batch = measured.batch};
    row.algbw = static_cast<double>(row.bytes) / row.time.median / 1e3;
    row.busbw = row.algbw * bus_factor(cell.op, world.size());
    rows.push_back(row);
    progress(rows.size(), cells.size());
  }
  return rows;
}

}  // namespace medley::tune
