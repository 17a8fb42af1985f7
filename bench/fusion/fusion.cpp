// Many small tensors all_reduced one by one, as a list, in a fuse scope and by automatic fusion, interleaved in one
// run.
//   medley run -n 8 --backends shm -- bench_fusion [--backend shm] [--tensors 1000] [--bytes 1024] [--mix] [--rounds 20] [--only list] [--message 65536 [--algorithm ring]]
// Prints, on rank 0, the median time of each way and its ratio to one by one (async calls, then a wait for each).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <medley/medley.hpp>
#include <random>
#include <string>

namespace {

using namespace medley;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string backend;
  int tensors = 1000;
  std::int64_t bytes = 1024;
  bool mix = false;
  int rounds = 20;
  std::string only;          ///< one way alone, for counting instructions
  std::int64_t message = 0;  ///< also packed by hand, in messages of so many bytes,
  std::string algorithm;     ///< by this algorithm
};

Arguments parse(int argc, char** argv) {
  Arguments made;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string("0"); };
    if (word == "--backend") made.backend = value();
    else if (word == "--tensors") made.tensors = std::stoi(value());
    else if (word == "--bytes") made.bytes = std::stoll(value());
    else if (word == "--mix") made.mix = true;
    else if (word == "--rounds") made.rounds = std::stoi(value());
    else if (word == "--only") made.only = value();
    else if (word == "--message") made.message = std::stoll(value());
    else if (word == "--algorithm") made.algorithm = value();
    else throw std::runtime_error("unknown argument " + word);
  }
  return made;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Sizes of a mixture: a few large tensors among many small ones, like the parameters of a layer.
std::vector<std::size_t> sizes_of(const Arguments& arguments) {
  std::mt19937 random(7);
  std::vector<std::size_t> counts;
  for (int i = 0; i < arguments.tensors; ++i) {
    // 64 bytes to 512 KiB
    const std::int64_t bytes = arguments.mix ? std::int64_t{64} << (random() % 14) : arguments.bytes;
    counts.push_back(static_cast<std::size_t>(std::max<std::int64_t>(bytes / 4, 1)));
  }
  return counts;
}

/// Copies the tensors into messages, sums those and copies the results back: what fusion could reach with messages of
/// this size.
class PackedByHand {
 public:
  PackedByHand(Comm& comm, std::vector<std::vector<float>>& tensors, const Options& options, const Arguments& arguments)
      : comm_(comm), tensors_(tensors), options_(options), most_(static_cast<std::size_t>(arguments.message) / 4) {
    options_.algorithm = arguments.algorithm;
    std::size_t all = 0;
    for (const auto& tensor : tensors_) all += tensor.size();
    packed_.resize(all);
  }
  void operator()() {
    std::vector<Work> works;
    float* at = packed_.data();
    float* begin = at;
    for (const auto& tensor : tensors_) {
      at = std::copy(tensor.begin(), tensor.end(), at);
      if (static_cast<std::size_t>(at - begin) < most_ && at != packed_.data() + packed_.size()) continue;
      works.push_back(comm_.all_reduce(Buffer(begin, at - begin, DType::f32), sum, options_));
      begin = at;
    }
    for (Work& work : works) work.wait();
    const float* from = packed_.data();
    for (auto& tensor : tensors_) {
      std::copy_n(from, tensor.size(), tensor.begin());
      from += tensor.size();
    }
  }

 private:
  Comm& comm_;
  std::vector<std::vector<float>>& tensors_;
  Options options_;
  std::size_t most_;
  std::vector<float> packed_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  Context context;
  Comm world = context.world(), automatic = world.dup({.fuse = true});
  std::vector<std::vector<float>> tensors;
  for (const std::size_t count : sizes_of(arguments)) tensors.emplace_back(count, 0.0f);
  const std::vector<Buffer> list(tensors.begin(), tensors.end());
  const Options options{.backend = arguments.backend, .async = true};
  std::vector<Work> works(tensors.size());
  const auto each = [&](Comm& comm) {
    for (std::size_t t = 0; t < tensors.size(); ++t) works[t] = comm.all_reduce(tensors[t], sum, options);
  };
  const auto wait_all = [&] {
    for (Work& work : works) work.wait();
  };
  struct Way {
    const char* name;
    std::function<void()> run;
    std::vector<double> us{};
  };
  // One by one twice: the ratio of the second to the first is the noise of the machine.
  std::vector<Way> ways = {{"one by one", [&] { each(world), wait_all(); }},
                           {"again", [&] { each(world), wait_all(); }},
                           {"list", [&] { world.all_reduce(list, sum, options).wait(); }},
                           {"scope",
                            [&] {
                              {
                                const Fuse scope(world);
                                each(world);
                              }
                              wait_all();
                            }},
                           {"automatic", [&] { each(automatic), wait_all(); }}};
  PackedByHand packed(world, tensors, options, arguments);
  if (arguments.message > 0) ways.push_back({"by hand", [&] { packed(); }});
  if (!arguments.only.empty()) std::erase_if(ways, [&](const Way& way) { return way.name != arguments.only; });
  for (int round = -2; round < arguments.rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      // Each follows every other one in turn
      Way& way = ways[(i + static_cast<std::size_t>(round + 2)) % ways.size()];
      world.barrier({.backend = arguments.backend});
      const auto begin = Clock::now();
      way.run();
      if (round >= 0) way.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
  }
  if (context.rank() == 0) {
    const double base = median(ways[0].us);
    fmt::print("{} ranks, {} tensors of {}, {}:", context.size(), arguments.tensors,
               arguments.mix ? std::string("64 B to 512 KiB") : fmt::format("{} bytes", arguments.bytes),
               arguments.backend.empty() ? "auto" : arguments.backend);
    for (const Way& way : ways) fmt::print("  {} {:.0f} us ({:.2f}x)", way.name, median(way.us), base / median(way.us));
    fmt::print("\n");
  }
  world.barrier();
}
