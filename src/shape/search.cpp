#include "shape/search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <medley/error.hpp>
#include <mutex>
#include <thread>
#include <tuple>

#include "shape/advice.hpp"

namespace medley::shape {
namespace {

bool within(double value, double of, double tolerance) { return std::abs(value / of - 1) <= tolerance + 1e-12; }

Count width_of(const Model& model) { return model.moe() ? model.moe_ffn : model.ffn; }

double parameters_of(const Model& model) { return double(plan::count_parameters(model).total); }

Candidate candidate_of(const Model& m) {
  return {.hidden = m.hidden,
          .heads = m.heads,
          .kv_heads = m.kv_heads,
          .head_dim = m.head_dim,
          .layers = m.layers,
          .ffn = width_of(m),
          .vocab = m.vocab};
}

// One order for all results, so that the number of threads has no effect: the nearest shape first.
auto order(const Candidate& c) { return std::tuple(c.distance, c.hidden, c.layers, c.heads, c.ffn, c.vocab); }

double distance_of(const Model& model, const Candidate& c) {
  const auto apart = [](Count a, Count b) { return std::abs(std::log(double(a) / double(b))); };
  return apart(c.hidden, model.hidden) + apart(c.heads, model.heads) + apart(c.layers, model.layers) +
         apart(c.ffn, width_of(model));
}

struct HeadChoice {
  Count heads, kv_heads, head_dim;
};

class Searcher {
 public:
  Searcher(const GpuModel& gpu, const Model& model, const Workload& work, const Bounds& bounds)
      : gpu_(gpu), model_(model), work_(work), bounds_(bounds), parameters_(parameters_of(model)) {
    Pricer pricer(gpu);
    base_ = step_time(pricer, model, work);
    vocab_ = model.vocab;
    if (auto padded = best_of(pricer, base_, model, vocabulary_changes(model, work));
        !padded.empty() && padded.front().gain > 0)
      vocab_ = padded.front().change.now;
  }

  // Hidden sizes are distributed over the threads: shapes of one hidden size share most of their products.
  SearchResult run(unsigned threads, const std::function<void(std::size_t, std::size_t)>& progress) {
    const std::vector<Count> widths = hidden_sizes();
    std::atomic<std::size_t> next{0};
    const auto worker = [&](bool tells) {
      Pricer pricer(gpu_);
      std::vector<Candidate> found;
      Count priced = 0;
      for (std::size_t i; (i = next++) < widths.size();) {
        priced += explore(pricer, widths[i], found);
        if (tells) progress(i + 1, widths.size());
      }
      found = pareto_of_and_best(std::move(found));
      const std::lock_guard lock(mutex_);
      result_.candidates += priced;
      result_.products += pricer.distinct();
      kept_.insert(kept_.end(), found.begin(), found.end());
    };
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < threads; ++i) pool.emplace_back(worker, false);
    try {
      worker(static_cast<bool>(progress));
    } catch (...) {
      next = widths.size();  // the other threads end after their hidden size
      throw;
    }
    pool.clear();  // joins
    return finish();
  }

 private:
  std::vector<Count> hidden_sizes() const {
    std::vector<Count> out{model_.hidden};
    const double reach = (1 + bounds_.aspect) * (1 + bounds_.depth);
    const Count step = bounds_.hidden_step;
    for (Count h = plan::ceil_div(Count(double(model_.hidden) / reach), step) * step;
         double(h) <= double(model_.hidden) * reach; h += step)
      if (h != model_.hidden && h > 0) out.push_back(h);
    return out;
  }

  // Heads stay within a factor of two; a query width that is independent of hidden (Qwen3) stays unchanged.
  std::vector<HeadChoice> head_choices(Count hidden) const {
    if (model_.latent_attention() || model_.heads * model_.head_dim != model_.hidden)
      return {{model_.heads, model_.kv_heads, model_.head_dim}};
    std::vector<HeadChoice> out;
    const Count tp = work_.layout.tp;
    for (const Count head_dim : {32, 48, 64, 80, 96, 112, 128, 160, 192, 256}) {
      if (hidden % head_dim != 0) continue;
      const Count heads = hidden / head_dim, kv = model_.kv_heads == model_.heads ? heads : model_.kv_heads;
      if (heads % tp != 0 || heads % kv != 0 || (kv % tp != 0 && tp % kv != 0)) continue;
      if (2 * heads < model_.heads || heads > 2 * model_.heads) continue;
      out.push_back({heads, kv, head_dim});
    }
    return out;
  }

  // Parameters grow linearly with the MLP's width, so two counts give the range of widths within bounds.
  std::vector<Count> ffn_widths(Model model) const {
    Count& width = model.moe() ? model.moe_ffn : model.ffn;
    const Count step = bounds_.ffn_step * work_.layout.tp;
    width = step;
    const double low = parameters_of(model);
    width = 2 * step;
    const double slope = (parameters_of(model) - low) / double(step);
    const double ratio = double(width_of(model_)) / double(model_.hidden) * double(model.hidden);
    const double least = std::max(ratio * (1 - bounds_.ffn_ratio),
                                  double(step) + (parameters_ * (1 - bounds_.parameters) - low) / slope);
    const double most = std::min(ratio * (1 + bounds_.ffn_ratio),
                                 double(step) + (parameters_ * (1 + bounds_.parameters) - low) / slope);
    std::vector<Count> out;
    for (Count w = std::max<Count>(1, Count(std::ceil(least / double(step)))) * step; double(w) <= most; w += step)
      out.push_back(w);
    // the model's own width need not be a multiple of the step
    if (const double own = double(width_of(model_)); own >= least && own <= most && width_of(model_) % step != 0)
      out.push_back(width_of(model_));
    return out;
  }

  std::vector<Count> depths(Count hidden) const {
    std::vector<Count> out;
    const double aspect = double(model_.hidden) / double(model_.layers);
    const auto low = Count(std::ceil(double(model_.layers) * (1 - bounds_.depth)));
    for (Count layers = std::max<Count>(low, work_.layout.pp);
         within(double(layers), double(model_.layers), bounds_.depth); ++layers) {
      const bool even = layers % work_.layout.pp == 0 || layers == model_.layers;
      if (even && within(double(hidden) / double(layers), aspect, bounds_.aspect)) out.push_back(layers);
      if (!model_.dense_layers.empty()) return {model_.layers};  // layers listed by index fix the depth
    }
    return out;
  }

  Count explore(Pricer& pricer, Count hidden, std::vector<Candidate>& found) const {
    Count priced = 0;
    Model model = model_;
    model.hidden = hidden;
    model.vocab = vocab_;
    if (model_.embedding_width == model_.hidden) model.embedding_width = hidden;
    if (model.moe())
      model.ffn = plan::round_up(Count(double(model_.ffn) * double(hidden) / double(model_.hidden)),
                                 bounds_.ffn_step * work_.layout.tp);
    for (const auto& [heads, kv_heads, head_dim] : head_choices(hidden)) {
      model.heads = heads;
      model.kv_heads = kv_heads;
      model.head_dim = head_dim;
      for (const Count layers : depths(hidden)) {
        model.layers = layers;
        for (const Count width : ffn_widths(model)) {
          Model shaped = model;
          (shaped.moe() ? shaped.moe_ffn : shaped.ffn) = width;
          const Step step = step_time(pricer, shaped, work_);
          ++priced;
          found.push_back(rated(shaped, step));
        }
      }
    }
    return priced;
  }

  Candidate rated(const Model& model, const Step& step) const {
    Candidate c = candidate_of(model);
    c.gain = step.tokens_per_s / base_.tokens_per_s - 1;
    c.parameters = parameters_of(model) / parameters_ - 1;
    c.tflops = step.tflops;
    c.efficiency = step.efficiency;
    c.distance = distance_of(model_, c);
    return c;
  }

  static double net(const Candidate& c) { return (1 + c.gain) * (1 + c.parameters); }

  // A thread's result: its part of the Pareto list and its best candidate at equal parameters.
  static std::vector<Candidate> pareto_of_and_best(std::vector<Candidate> found) {
    if (found.empty()) return found;
    const Candidate best =
        *std::ranges::min_element(found, {}, [](const Candidate& c) { return std::pair(-net(c), order(c)); });
    found = pareto_of(std::move(found));
    found.push_back(best);
    return found;
  }

  SearchResult finish() {
    result_.given = rated(model_, base_);
    kept_.push_back(result_.given);
    result_.best_net =
        *std::ranges::min_element(kept_, {}, [](const Candidate& c) { return std::pair(-net(c), order(c)); });
    result_.fastest =
        *std::ranges::min_element(kept_, {}, [](const Candidate& c) { return std::pair(-c.gain, order(c)); });
    result_.pareto = pareto_of(std::move(kept_));
    return std::move(result_);
  }

  const GpuModel& gpu_;
  const Model& model_;
  const Workload& work_;
  const Bounds& bounds_;
  const double parameters_;
  Step base_;
  Count vocab_ = 0;
  std::mutex mutex_;
  std::vector<Candidate> kept_;
  SearchResult result_;
};

}  // namespace

std::vector<Candidate> pareto_of(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, {},
                    [](const Candidate& c) { return std::tuple(std::abs(c.parameters), -c.gain, order(c)); });
  std::vector<Candidate> out;
  for (const Candidate& c : candidates)
    if (out.empty() || c.gain > out.back().gain) out.push_back(c);
  return out;
}

Model with(const Model& model, const Candidate& c) {
  Model m = model;
  if (m.embedding_width == m.hidden) m.embedding_width = c.hidden;
  m.hidden = c.hidden;
  m.heads = c.heads;
  m.kv_heads = c.kv_heads;
  m.head_dim = c.head_dim;
  m.layers = c.layers;
  m.vocab = c.vocab;
  (m.moe() ? m.moe_ffn : m.ffn) = c.ffn;
  return m;
}

SearchResult search(const GpuModel& gpu, const Model& model, const Workload& work, const Bounds& bounds,
                    unsigned threads, const std::function<void(std::size_t, std::size_t)>& progress) {
  if (bounds.hidden_step < 1 || bounds.ffn_step < 1)
    throw Error(ErrorKind::invalid, "search: steps of hidden and ffn must be at least 1");
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  return Searcher(gpu, model, work, bounds).run(threads, progress);
}

}  // namespace medley::shape
