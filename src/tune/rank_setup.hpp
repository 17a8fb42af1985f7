// How the ranks of a measurement are set up: their context, cores and backends. Used by bench, the tuner and
// replay.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::tune {

/// What a context needs to measure these backends on such memory: of CUDA memory the rank's device, and where
/// only nccl is named something beside it that moves host memory, since ranks also tell each other their
/// times.
ContextOptions context_for(std::vector<std::string> backends, Memory memory);
/// A core for each rank of a machine where there are enough: two ranks that wait by yielding can share one
/// for seconds while another is free. Threads that libraries have started before stay free to go anywhere.
/// Collective.
void bind_to_core(Context& context);
/// The same while it lives. Collective to make.
class BoundToCore {
 public:
  explicit BoundToCore(Context& context);
  ~BoundToCore();
  BoundToCore(const BoundToCore&) = delete;
  BoundToCore& operator=(const BoundToCore&) = delete;

 private:
  std::string before_;  ///< the cores of this thread before
};
std::vector<std::string> available_backends(const Context& context);
/// Without the runtime's own choice, which is no library that a context or a launcher must know.
std::vector<std::string> without_auto(std::vector<std::string> backends);

/// The backends that a context for such a list opens: "auto" alone stays, since it opens only what the table chooses.
std::vector<std::string> backends_to_open(const std::vector<std::string>& listed);

}  // namespace medley::tune
