// The shm backend: all operations natively, between ranks of one host.
#include <fmt/format.h>

#include "backends/shm/algorithm.hpp"
#include "backends/shm/host_peers.hpp"
#include "backends/shm/lane.hpp"
#include "backends/shm/plugin.hpp"

namespace medley::shm {
namespace {

class ShmBackend final : public Backend {
 public:
  explicit ShmBackend(const BackendParams& params) : host_peers_(params), hosts_(params.hosts) {}
  std::string_view name() const override { return "shm"; }
  std::string version() const override {
    return host_peers_.direct_reads() ? "with direct reads" : "without direct reads";
  }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op, DType, ReduceOp, Memory memory) const override { return memory == Memory::host; }
  std::string refuses(const std::vector<int>& world_ranks) const override {
    const int first = world_ranks.front();
    for (int r : world_ranks) {
      if (hosts_[static_cast<std::size_t>(r)] != hosts_[static_cast<std::size_t>(first)]) {
        return fmt::format("shm serves one host, and ranks {} and {} are on different ones", first, r);
      }
    }
    return {};
  }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<ShmLane>(params, host_peers_);
  }
  EventCount* event_count() override { return &host_peers_; }
  bool fixed_order() const override { return true; }
  bool has(Trait trait) const override {
    return trait == Trait::default_for_host || trait == Trait::inside_host || trait == Trait::sends_now;
  }
  std::vector<std::string_view> algorithms(Op op) const override {
    return Algorithm::names(op, host_peers_.direct_reads());
  }

 private:
  HostPeers host_peers_;
  std::vector<std::string> hosts_;
};

}  // namespace

const BackendPlugin& plugin() {
  static const BackendPlugin shm{
      .name = "shm",
      .unavailable = []() -> std::string {
        try {
          Segment::make(4096, "a probe");
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      .create = [](const BackendParams& params) -> std::unique_ptr<Backend> {
        return std::make_unique<ShmBackend>(params);
      },
  };
  return shm;
}

}  // namespace medley::shm
