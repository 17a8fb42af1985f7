// The ucx backend: sends and receives over UCP, by shared memory, TCP or RDMA, whichever UCX finds best.
#include <fmt/format.h>

#include "backends/ucx/comm_ids.hpp"
#include "backends/ucx/lane.hpp"
#include "backends/ucx/peers.hpp"
#include "backends/ucx/tag.hpp"
#include "backends/ucx/worker.hpp"

namespace medley::ucx {
namespace {

struct Version {
  unsigned major = 0, minor = 0, patch = 0;
  Version() { ucp_get_version(&major, &minor, &patch); }
};

class UcxBackend final : public Backend {
 public:
  explicit UcxBackend(const BackendParams& params) : worker_(params), peers_(worker_, params) {}
  std::string_view name() const override { return "ucx"; }
  std::string version() const override { return fmt::format("UCX {}", ucp_get_version_string()); }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType, ReduceOp, Memory memory) const override {
    return memory == Memory::host && (op == Op::send || op == Op::recv);
  }
  std::string refuses(const std::vector<int>& world_ranks) const override {
    if (world_ranks.size() <= max_ranks) return {};
    return fmt::format("ucx serves comms of up to {} ranks, and this one has {}", max_ranks, world_ranks.size());
  }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<UcxLane>(params, worker_, peers_, ids_, store_agent_);
  }
  bool has(Trait trait) const override { return trait == Trait::sends_now; }
  EventCount* event_count() override { return &worker_.event_count(); }

 private:
  StoreAgent store_agent_;
  CommIds ids_;
  Worker worker_;
  Peers peers_;  // destroyed first: its farewell goes through the worker
};

std::string unavailable() {
  const Version found;
  if (found.major == 1 && found.minor >= 11) return {};
  return fmt::format("it needs UCX 1.11 or later of version 1, and this is {}", ucp_get_version_string());
}

}  // namespace
}  // namespace medley::ucx

extern "C" const medley::BackendPlugin* medley_backend() {
  using namespace medley;
  static const BackendPlugin plugin{
      .name = "ucx",
      .unavailable = ucx::unavailable,
      .create = [](const BackendParams& params) -> std::unique_ptr<Backend> {
        return std::make_unique<ucx::UcxBackend>(params);
      },
  };
  return &plugin;
}
