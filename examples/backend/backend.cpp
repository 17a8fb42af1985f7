// The plugin: how Medley finds this backend, what it can do, and how a comm is connected.
// docs/adding-a-backend.md explains these files.
#include <medley/backend.hpp>

#include "lane.hpp"

namespace {

using namespace medley;

class SocketBackend final : public Backend {
 public:
  explicit SocketBackend(const BackendParams& params) : hosts_(params.hosts) {}
  std::string_view name() const override { return "socket"; }
  std::string version() const override { return "Unix-domain sockets"; }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  /// Sends and receives only: Medley fills in the collectives.
  bool native(Op op, DType, ReduceOp, Memory memory) const override {
    return memory == Memory::host && (op == Op::send || op == Op::recv);
  }
  std::string refuses(const std::vector<int>& world_ranks) const override {
    const std::string& first = hosts_[static_cast<std::size_t>(world_ranks.front())];
    for (int rank : world_ranks) {
      if (hosts_[static_cast<std::size_t>(rank)] == first) continue;
      return "socket serves one host, and ranks " + std::to_string(world_ranks.front()) + " and " +
             std::to_string(rank) + " are on different ones";
    }
    return {};
  }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<socket_backend::SocketLane>(params);
  }

 private:
  std::vector<std::string> hosts_;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .name = "socket",
      .unavailable = []() -> std::string { return {}; },  // every Linux has Unix-domain sockets
      .create = [](const BackendParams& params) -> std::unique_ptr<Backend> {
        return std::make_unique<SocketBackend>(params);
      },
  };
  return &plugin;
}
