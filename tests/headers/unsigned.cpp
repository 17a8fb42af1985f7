// Does not compile, with an error that names the elements that operations take.
#include <medley/comm.hpp>
#include <vector>

void wrong(medley::Comm& world, std::vector<unsigned>& values) {
  world.all_reduce(values, medley::sum);
  world.all_gather(values, values);
}
