// The basics in twenty lines: a blocking all_reduce, an exchange that continues while another operation
// overlaps it, and a wait. Start it with: medley run -n 4 -- build/release/bin/hello
#include <cstdio>
#include <medley/medley.hpp>
#include <vector>

int main() {
  medley::Context context;  // the launcher determines the ranks
  medley::Comm world = context.world();
  const int n = world.size();

  std::vector<float> gradients(1 << 20, 1.0f);
  std::vector<float> tokens(1024 * n, static_cast<float>(world.rank())), routed(1024 * n);
  world.all_reduce(gradients, medley::sum);  // every element is now n
  auto exchange = world.all_to_all(tokens, routed, {.async = true});
  world.all_reduce(gradients, medley::max);  // overlaps the exchange: it touches other memory
  exchange.wait();

  std::printf("rank %d of %d: gradients %.0f, last token from rank %.0f\n", world.rank(), n,
              static_cast<double>(gradients.front()), static_cast<double>(routed.back()));
}
