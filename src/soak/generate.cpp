#include "soak/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "route/pair_name.hpp"
#include "soak/builder.hpp"
#include "soak/schedule.hpp"

namespace medley::soak {

bool GenerateOptions::with_nccl() const {
  const std::vector<std::string> used = libraries();
  return memory == Memory::cuda && std::find(used.begin(), used.end(), "nccl") != used.end();
}

std::vector<std::string> GenerateOptions::libraries() const {
  std::vector<std::string> names;
  for (const std::string& backend : backends) {
    for (const std::string_view half : route::halves_of(backend)) {
      // On host memory the first half of a pair such as shm+gloo serves the ranks of one host, and comms span hosts.
      if (memory == Memory::host && route::is_pair(backend) && half == route::inside_of(backend)) continue;
      if (std::find(names.begin(), names.end(), half) == names.end()) names.emplace_back(half);
    }
  }
  return names;
}

std::string GenerateOptions::rules() const {
  std::vector<std::string> of_two;
  std::copy_if(backends.begin(), backends.end(), std::back_inserter(of_two), route::is_made_of_two);
  std::string text;
  std::size_t next = 0;
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::broadcast, Op::reduce_scatter, Op::all_to_all, Op::reduce}) {
    if (!of_two.empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : ";", name(op), of_two[next++ % of_two.size()]);
  }
  return text;
}

Program generate(std::uint64_t seed, int ranks, const GenerateOptions& options) {
  Random random(seed);
  Program program;
  program.seed = seed;
  program.ranks = ranks;
  program.one_order = options.with_nccl();
  const std::int64_t dice = random.below(20);
  // Mostly small, so that many operations touch the same bytes and a program takes a millisecond.
  const std::int64_t memory = dice < 8    ? 2048 << random.below(3)
                              : dice < 17 ? 16384 << random.below(4)
                                          : (std::int64_t{1} << 20) << random.below(3);
  program.memory = std::min(memory, options.most_memory);
  program.progress_thread = random.chance(25);
  for (int i = 0; i < 2; ++i) program.palette.push_back(static_cast<DType>(random.below(dtype_count)));
  CommPlan world{.name = "world", .members = {}};
  for (int r = 0; r < ranks; ++r) world.members.push_back(r);
  program.comms.push_back(world);
  const int most = program.memory > (1 << 19) ? options.most_steps / 3 : options.most_steps;
  int left = random.between(std::min(3, most), most);
  GenerateOptions plain = options;
  plain.backends = options.libraries();
  plain.over_two = !options.rules().empty();
  Builder builder(program, random, plain);
  for (int phase = 0; left > 0; ++phase) {
    const int steps = random.between(1, left);
    builder.add_phase(phase, steps);
    left -= steps;
  }
  schedule(program, random);
  return program;
}

Program without(const Program& program, const std::vector<int>& steps) {
  Program less = program;
  for (int number : steps) less.step(number).removed = true;
  // Steps on a comm need the step that made it, which may come later in the list than the step that made its
  // parent.
  for (Step& step : less.steps) {
    const int maker = less.comm(step.comm).made_by;
    if (maker >= 0 && less.step(maker).removed) step.removed = true;
  }
  for (auto& rank : less.streams) {
    for (auto& phase : rank) {
      for (auto& stream : phase) {
        // The step that covered a dropped Work may be gone, so the Work is kept and waited for.
        for (const Action& action : stream) {
          if (action.dropped) rank.back()[0].push_back({.act = Act::finish, .step = action.step});
        }
        for (Action& action : stream) action.dropped = false;
        std::erase_if(stream, [&](const Action& action) { return less.step(action.step).removed; });
      }
    }
  }
  return less;
}

}  // namespace medley::soak
