// The gloo backend: TCP between ranks wherever they run, with Gloo's own collectives.
#include <fmt/format.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <mutex>

#include "backends/gloo/address.hpp"
#include "backends/gloo/lane.hpp"
#include "backends/gloo/no_pipe_signal.hpp"

namespace {

using namespace medley;
using namespace medley::gloo_backend;

class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(const BackendParams& params)
      : rank_(params.rank), hosts_(params.hosts), store_(params.store), address_(asked_address()) {
    const auto elsewhere = [&](const std::string& host) { return host != hosts_[static_cast<std::size_t>(rank_)]; };
    const bool one_host = std::none_of(hosts_.begin(), hosts_.end(), elsewhere);
    if (address_.empty()) address_ = one_host ? "127.0.0.1" : store_->own_address();
    if (!one_host) store_->set(fmt::format("address/{}", rank_), address_);
    search_ = !one_host && !leaves_host(address_);
  }
  std::string_view name() const override { return "gloo"; }
  std::string version() const override {
    return fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const override {
    return memory == Memory::host && (op == Op::send || op == Op::recv || has_collective(op, dtype, reduce));
  }
  std::string refuses(const std::vector<int>&) const override { return {}; }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<GlooLane>(params, device(params), hosts_, doorbell_);
  }
  EventCount* event_count() override { return doorbell_.get(); }
  /// Its rings combine each part in a fixed rank order, starting after the part's own rank, whatever the arrival order.
  bool fixed_order() const override { return true; }

 private:
  /// One for all comms, with one thread; made with the first comm.
  std::shared_ptr<::gloo::transport::Device> device(const CommParams& params) {
    const std::lock_guard lock(mutex_);
    if (device_) return device_;
    if (search_) address_ = find_address(params.deadline);
    const NoPipeSignal quiet;  // its thread inherits it
    try {
      device_ = ::gloo::transport::tcp::CreateDevice(::gloo::transport::tcp::attr(address_.c_str()));
    } catch (const std::exception& error) {
      throw Error(ErrorKind::system, fmt::format("gloo cannot listen on {}: {}", address_, error.what()),
                  {.backend = "gloo"});
    }
    return device_;
  }
  /// The store was reached without leaving this host, for instance by the rank that serves it: use the route to a rank
  /// elsewhere. If all ranks reached it so, their hosts share this machine's loopback interface.
  std::string find_address(Deadline deadline) {
    bool all_inside = true;
    for (std::size_t r = 0; r < hosts_.size(); ++r) {
      if (hosts_[r] == hosts_[static_cast<std::size_t>(rank_)]) continue;
      const std::string theirs = store_->get(fmt::format("address/{}", r), deadline);
      if (!leaves_host(theirs)) continue;
      all_inside = false;
      if (std::string own = address_towards(theirs); leaves_host(own)) return own;
    }
    if (all_inside) return address_;
    throw Error(ErrorKind::unavailable,
                "gloo found no address by which other hosts reach this one; name an interface or an address in "
                "MEDLEY_GLOO_INTERFACE",
                {.backend = "gloo"});
  }

  int rank_;
  std::vector<std::string> hosts_;
  std::shared_ptr<Store> store_;
  std::string address_;
  bool search_ = false;
  std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
  std::mutex mutex_;
  std::shared_ptr<::gloo::transport::Device> device_;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .name = "gloo",
      .unavailable = []() -> std::string {
        try {
          static_cast<void>(asked_address());
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      .create = [](const BackendParams& params) -> std::unique_ptr<Backend> {
        return std::make_unique<GlooBackend>(params);
      },
      .last_choice = true,  // between two hosts mpi and ucx carry a step in 0.2 to 0.5 of its time (mixes.csv)
  };
  return &plugin;
}
