// A user's program: sums ones over all ranks.
#include <cstdio>
#include <medley/medley.hpp>
#include <vector>

int main() {
  medley::Context context({"shm"});
  medley::Comm world = context.world();
  std::vector<float> values(1000, 1.0f);
  world.all_reduce(values, medley::sum);
  std::printf("rank %d of %d: %g\n", world.rank(), world.size(), static_cast<double>(values.back()));
  return values.back() == static_cast<float>(world.size()) ? 0 : 1;
}
