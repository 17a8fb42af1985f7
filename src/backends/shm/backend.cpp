// The shm backend: all operations natively, between ranks of one host.
#include <fmt/format.h>

#include "backends/shm/lane.hpp"
#include "backends/shm/neighbourhood.hpp"
#include "backends/shm/plugin.hpp"

namespace medley::shm {
namespace {

class ShmBackend final : public Backend {
 public:
  explicit ShmBackend(const Surroundings& surroundings) : neighbours_(surroundings), hosts_(surroundings.hosts) {}
  std::string_view name() const override { return "shm"; }
  std::string version() const override {
    return neighbours_.direct_reads() ? "with direct reads" : "without direct reads";
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
  std::unique_ptr<Lane> connect(const Group& group) override {
    return std::make_unique<ShmLane>(group, neighbours_);
  }
  Waiter* waiter() override { return &neighbours_; }
  bool fixed_order() const override { return true; }

 private:
  Neighbourhood neighbours_;
  std::vector<std::string> hosts_;
};

}  // namespace

const BackendPlugin& plugin() {
  static const BackendPlugin shm{
      .abi = backend_abi,
      .name = "shm",
      .unavailable = []() -> std::string {
        try {
          Segment::make(4096, "a probe");
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      .create = [](const Surroundings& s) -> std::unique_ptr<Backend> { return std::make_unique<ShmBackend>(s); },
  };
  return shm;
}

}  // namespace medley::shm
