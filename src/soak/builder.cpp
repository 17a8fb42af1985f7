#include "soak/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/registry.hpp"

namespace medley::soak {

Builder::Builder(Program& program, Random& random, const GenerateOptions& options)
    : program_(program),
      random_(random),
      options_(options),
      oracle_(program),
      largest_part_(random.one_of({3, 10, 100})) {}

void Builder::add_phase(int phase, int steps) {
  // Each comm belongs to one thread, so there are no more threads than comms.
  const int most = options_.with_nccl() ? 1 : std::min<int>(options_.most_threads, static_cast<int>(alive_.size()));
  const int threads = random_.chance(60) ? 1 : random_.between(1, most);
  program_.threads.push_back(threads);
  std::vector<Section> sections(static_cast<std::size_t>(threads));
  const std::int64_t part = program_.memory / threads / 64 * 64;
  for (int t = 0; t < threads; ++t) {
    sections[static_cast<std::size_t>(t)].begin = t * part;
    sections[static_cast<std::size_t>(t)].end = t + 1 == threads ? program_.memory : (t + 1) * part;
  }
  std::vector<int> comms = alive_;
  random_.shuffle(comms);
  for (std::size_t i = 0; i < comms.size(); ++i) sections[i % sections.size()].comms.push_back(comms[i]);
  for (int i = 0; i < steps; ++i) {
    const int thread = random_.between(0, threads - 1);
    add_step(phase, thread, sections[static_cast<std::size_t>(thread)]);
  }
}

void Builder::add_step(int phase, int thread, Section& section) {
  Step step;
  step.phase = phase;
  step.thread = thread;
  step.comm = section.comms.empty() ? 0 : random_.one_of(section.comms);
  const bool has_sized = std::find(section.comms.begin(), section.comms.end(), by_size_) != section.comms.end();
  if (has_sized && random_.chance(70)) step.comm = by_size_;
  const std::int64_t dice = random_.below(100);
  bool added = false;
  if (dice < 8 || section.comms.empty()) {
    added = add_touch(step, section);
  } else if (dice < 14) {
    added = add_comm(step, section);
  } else if (dice < 17) {
    added = add_drop(step, section);
  } else if (dice < 40) {
    added = add_messages(step, section);
  } else if (dice < 45) {
    added = add_any_source(step, section);
  } else {
    added = add_collective(step, section);
  }
  if (!added) return;
  program_.steps.push_back(std::move(step));
  oracle_.apply(static_cast<int>(program_.steps.size()) - 1);
}

void Builder::choose_route(Step& step) {
  const auto which = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(options_.backends.size()) + 1));
  if (which > 0) step.backend = options_.backends[which - 1];
  if (options_.online && step.kind == Kind::collective && random_.below(4) > 0) step.backend.clear();
}

/// Random routing rules that depend on the message size.
std::string Builder::rules_by_size(bool exact) {
  std::string rules;
  for (const Op op : {Op::gatherv, Op::scatterv, Op::all_to_allv}) {
    const std::int64_t border = random_.below(program_.memory / 8);
    const std::string &small = random_.one_of(options_.backends), &large = random_.one_of(options_.backends);
    rules += fmt::format("{0}{1}:0-{2}={3};{1}={4}", rules.empty() ? "" : ";", name(op), border, small, large);
  }
  if (exact) {
    const std::int64_t border = random_.one_of<std::int64_t>({0, 64, 4'000, random_.below(program_.memory / 16)});
    rules += fmt::format(";p2p:0-{}={};p2p={}", border, random_.one_of(options_.backends),
                         random_.one_of(options_.backends));
  }
  return rules;
}

bool Builder::over_nccl(const Step& step) const {
  return options_.with_nccl() && (step.backend.empty() || step.backend == "nccl");
}

std::int64_t Builder::count_up_to(std::int64_t most) {
  const std::int64_t dice = random_.below(100);
  if (most <= 0 || dice < 6) return 0;
  if (dice < 14) return 1;
  if (dice < 40) return 1 + random_.below(std::min<std::int64_t>(most, 16));
  return 1 + random_.below(std::max<std::int64_t>(most * largest_part_ / 100, 1));
}

std::vector<std::int64_t> Builder::place_apart(const std::vector<std::int64_t>& counts, DType dtype,
                                               const Section& section) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t free = (section.end - section.begin) / element;
  for (std::int64_t count : counts) free -= count;
  std::vector<std::int64_t> cuts, at(counts.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    cuts.push_back(random_.below(free + 1));
    order.push_back(i);
  }
  std::sort(cuts.begin(), cuts.end());
  random_.shuffle(order);
  std::int64_t used = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    at[order[k]] = section.begin + (cuts[k] + used) * element;
    used += counts[order[k]];
  }
  return at;
}

bool Builder::add_touch(Step& step, const Section& section) {
  step.kind = Kind::touch;
  step.rank = random_.between(0, program_.ranks - 1);
  step.dtype = static_cast<DType>(random_.below(dtype_count));
  step.comm = 0;
  const std::int64_t words = 1 + random_.below(std::max<std::int64_t>((section.end - section.begin) / 64, 1));
  step.bytes = words * 8;
  step.at = section.begin + random_.below((section.end - section.begin - step.bytes) / 8 + 1) * 8;
  return true;
}

bool Builder::add_comm(Step& step, Section& section) {
  if (alive_.size() >= 6) return false;
  step.kind = random_.one_of({Kind::split, Kind::split, Kind::subset, Kind::dup});
  const std::vector<int> parent = program_.comm(step.comm).members;
  const int n = static_cast<int>(parent.size());
  const int colors = step.kind == Kind::split ? random_.between(1, 3) : 1;
  for (int r = 0; r < n; ++r) {
    const bool out = step.kind == Kind::split ? random_.chance(10) : step.kind == Kind::subset && random_.chance(35);
    step.colors.push_back(out ? -1 : random_.between(0, colors - 1));
    step.keys.push_back(step.kind == Kind::dup ? r : static_cast<int>(random_.below(100)));
  }
  if (step.kind == Kind::subset && std::all_of(step.colors.begin(), step.colors.end(), [](int c) { return c < 0; }))
    return false;
  for (int color = 0; color < colors; ++color) {
    std::vector<int> members;
    for (int r = 0; r < n; ++r) {
      if (step.colors[static_cast<std::size_t>(r)] == color) members.push_back(r);
    }
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return step.keys[static_cast<std::size_t>(a)] < step.keys[static_cast<std::size_t>(b)];
    });
    if (members.empty()) {
      step.made.push_back(-1);
      continue;
    }
    CommPlan made;
    const auto number = static_cast<int>(program_.comms.size());
    made.name = "c" + std::to_string(number);
    made.made_by = static_cast<int>(program_.steps.size());
    for (int r : members) made.members.push_back(parent[static_cast<std::size_t>(r)]);
    made.exact = random_.chance(40);
    if (random_.chance(50)) {
      made.rules = rules_by_size(made.exact);
      by_size_ = number;
    }
    made.fuse = random_.chance(35);
    program_.comms.push_back(made);
    step.made.push_back(number);
    alive_.push_back(number);
    section.comms.push_back(number);
  }
  return true;
}

bool Builder::add_drop(Step& step, Section& section) {
  if (step.comm == 0) return false;
  step.kind = Kind::drop;
  std::erase(alive_, step.comm);
  std::erase(section.comms, step.comm);
  return true;
}

}  // namespace medley::soak
