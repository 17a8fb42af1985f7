// The nccl backend: all operations on CUDA memory, none on host memory.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "backends/nccl/lane.hpp"

namespace medley::nccl {
namespace {

/// What NCCL considers one device: it refuses two ranks on one device of one host.
std::string device_identity(const BackendParams& params) {
  char bus[32] = {};
  cuda::check(cudaDeviceGetPCIBusId(bus, sizeof bus, params.device), "cudaDeviceGetPCIBusId");
  const char* host = std::getenv("NCCL_HOSTID");  // NCCL's own setting to mark ranks as on different hosts
  const auto me = static_cast<std::size_t>(params.rank);
  return fmt::format("{} of {}", bus, host && *host ? host : params.hosts[me]);
}

class NcclBackend final : public Backend {
 public:
  explicit NcclBackend(const BackendParams& params) : device_(params.device) {
    int count = 0;
    cuda::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (device_ < 0 || device_ >= count) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("CUDA device {} does not exist; this machine has {} of them, counted "
                              "from 0",
                              device_, count));
    }
    params.store->set(fmt::format("device/{}", params.rank), device_identity(params));
    for (int r = 0; r < params.size; ++r) {
      devices_.push_back(params.store->get(fmt::format("device/{}", r), params.deadline));
    }
    if (params.device_times) clock_ = std::make_shared<cuda::DeviceClock>(device_);
  }
  std::string_view name() const override { return "nccl"; }
  std::string version() const override { return version_text(); }
  bool has_memory(Memory memory) const override { return memory == Memory::cuda; }
  bool native(Op op, DType, ReduceOp, Memory memory) const override {
    return memory == Memory::cuda || op == Op::barrier;
  }
  // Where reproducible bits are required, a kernel of ours combines the ranks in their order.
  bool fixed_order() const override { return true; }
  bool has(Trait trait) const override { return trait == Trait::default_for_cuda || trait == Trait::connects_lazily; }
  std::string refuses(const std::vector<int>& world_ranks) const override {
    for (std::size_t a = 0; a < world_ranks.size(); ++a) {
      for (std::size_t b = a + 1; b < world_ranks.size(); ++b) {
        const auto& device = devices_[static_cast<std::size_t>(world_ranks[a])];
        if (device != devices_[static_cast<std::size_t>(world_ranks[b])]) continue;
        return fmt::format("nccl needs a device for each rank, and ranks {} and {} share {}", world_ranks[a],
                           world_ranks[b], device);
      }
    }
    return {};
  }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<NcclLane>(params, store_agent_, device_, clock_);
  }

 private:
  StoreAgent store_agent_;
  int device_;
  std::vector<std::string> devices_;          ///< by world rank
  std::shared_ptr<cuda::DeviceClock> clock_;  ///< set where operations are traced
};

std::string unavailable() {
  const char* wish = std::getenv("MEDLEY_CUDA");
  if (wish && std::string_view(wish) == "0") return "MEDLEY_CUDA=0 switches CUDA off";
  std::error_code ignored;
  if (!(wish && std::string_view(wish) == "1") && !std::filesystem::exists("/dev/nvidiactl", ignored)) {
    return "this machine has no NVIDIA driver";
  }
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) return fmt::format("CUDA finds no device: {}", cudaGetErrorString(result));
  return count > 0 ? std::string() : "this machine has no CUDA device";
}

std::unique_ptr<Backend> create(const BackendParams& params) {
  // Makes all connections when a comm is made, instead of one algorithm after the other in the middle of a run. A
  // user's own setting is kept.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  // Reserves the stack of NCCL's largest kernel from the start: otherwise CUDA grows it at the launch of a kernel that
  // needs it, and that launch waits for all running kernels, one of which may wait for a peer that waits for this rank.
  setenv("NCCL_SET_STACK_SIZE", "1", 0);
  return std::make_unique<NcclBackend>(params);
}

}  // namespace
}  // namespace medley::nccl

extern "C" MEDLEY_API const medley::BackendPlugin* medley_backend() {
  static const medley::BackendPlugin plugin{
      .name = "nccl",
      .unavailable = medley::nccl::unavailable,
      .create = medley::nccl::create,
  };
  return &plugin;
}
