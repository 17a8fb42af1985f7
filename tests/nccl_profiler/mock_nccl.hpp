// Calls a profiler plugin as NCCL does: what it looks up, in which order events start and stop, and from
// where. Used by the plugin's test and its benchmark.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "nccl_profiler/abi.hpp"

namespace medley::nccl_profiler::test {

class MockNccl {
 public:
  explicit MockNccl(const std::string& path) : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(dlerror());
    v6_ = static_cast<PluginV6*>(dlsym(library_, "ncclProfiler_v6"));
    v5_ = static_cast<PluginV5*>(dlsym(library_, "ncclProfiler_v5"));
    v4_ = static_cast<PluginV4*>(dlsym(library_, "ncclProfiler_v4"));
    if (!v6_ || !v5_ || !v4_) throw std::runtime_error("the plugin lacks a version of the interface");
  }

  /// Making a comm is collective: no rank is through before all have begun. Called by each rank after its part.
  std::function<void()> meet;

  struct Comm {
    void* context = nullptr;
    int mask = 0, ranks = 0, rank = 0;
    int version = 5;
    std::uint64_t sequence = 0;
  };

  Comm comm(std::uint64_t hash, const char* name, int ranks, int rank, int version = 5) {
    Comm out{nullptr, 0, ranks, rank, version, 0};
    if (version == 6) v6_->init(&out.context, hash, &out.mask, name, 1, ranks, rank, nullptr);
    else if (version == 5) v5_->init(&out.context, hash, &out.mask, name, 1, ranks, rank, nullptr);
    else v4_->init(&out.context, &out.mask, name, hash, 1, ranks, rank, nullptr);
    if (meet) meet();
    return out;
  }

  /// What has been launched and not yet finished on the GPU.
  struct Launched {
    void* event = nullptr;
    int channels = 0;
    int version = 5;
  };

  /// A collective up to the launch of its kernel. AllGather and Broadcast are turned into bytes on the way,
  /// as NCCL does it.
  Launched collective(Comm& comm, const char* function, std::size_t count, const char* datatype, std::size_t element,
                      int root = 0, int channels = 2) {
    const bool bytes = std::strcmp(function, "AllGather") == 0 || std::strcmp(function, "Broadcast") == 0;
    const std::size_t moved = bytes ? count * element : count;
    const char* type = bytes ? "ncclInt8" : datatype;
    Launched out{nullptr, channels, comm.version};
    const auto since_5 = [&](auto* plugin, auto d) {
      void* api = call(plugin, d, comm, function, count, datatype, root);
      d.type = collective_event;
      d.parent = api;
      d.rank = comm.rank;
      d.collective = {
          comm.sequence++, function, nullptr, nullptr, moved, root, type, static_cast<std::uint8_t>(channels), 8,
          "RING",          "SIMPLE", nullptr};
      plugin->start_event(comm.context, &out.event, &d);
    };
    if (comm.version == 6) {
      since_5(v6_, DescriptorV6{});
    } else if (comm.version == 5) {
      since_5(v5_, DescriptorV5{});
    } else {
      DescriptorV4 d{};
      d.type = collective_event;
      d.rank = comm.rank;
      d.collective = {
          comm.sequence++, function, nullptr, nullptr, moved, root, type, static_cast<std::uint8_t>(channels), 8,
          "RING",          "SIMPLE"};
      v4_->start_event(comm.context, &out.event, &d);
    }
    if (out.event) v5_->stop_event(out.event);
    return out;
  }

  /// A collective of the copy engines: NCCL reports its launch, and nothing from the GPU. False: it is not recorded.
  bool copy_engine(Comm& comm, const char* function, std::size_t count, const char* datatype, int root = 0) {
    if (!(comm.mask & copy_engine_event)) return false;
    DescriptorV6 d{};
    void* api = call(v6_, d, comm, function, count, datatype, root);
    d.type = copy_engine_event;
    d.parent = api;
    d.rank = comm.rank;
    d.copy_engine = {comm.sequence++, function, nullptr, nullptr, count, root, datatype, "UC", false, 0, 0, 1, nullptr};
    void* event = nullptr;
    v6_->start_event(comm.context, &event, &d);
    if (event) v6_->stop_event(event);
    return event != nullptr;
  }

  Launched message(Comm& comm, const char* function, std::size_t count, const char* datatype, int peer) {
    DescriptorV5 d{};
    d.type = message_event;
    d.rank = comm.rank;
    d.message = {function, nullptr, datatype, count, peer, 1, nullptr};
    Launched out{nullptr, 1, 5};
    v5_->start_event(comm.context, &out.event, &d);
    if (out.event) v5_->stop_event(out.event);
    return out;
  }

  /// The GPU ran it from `begin` to `end`, in ns of its own clock.
  void ran(Comm& comm, const Launched& launched, std::uint64_t begin, std::uint64_t end) {
    for (int channel = 0; channel < launched.channels && launched.event; ++channel) {
      void* event = nullptr;
      const auto start = [&](auto* plugin, auto d) {
        d.type = kernel_channel_event;
        d.parent = launched.event;
        d.kernel_channel = {static_cast<std::uint8_t>(channel), begin};
        plugin->start_event(comm.context, &event, &d);
      };
      if (launched.version == 6) start(v6_, DescriptorV6{});
      else if (launched.version == 5) start(v5_, DescriptorV5{});
      else start(v4_, DescriptorV4{});
      StateArguments arguments{};
      arguments.timer = end;
      v5_->record_state(event, kernel_channel_stop, &arguments);
      v5_->stop_event(event);
    }
  }

  void close(Comm& comm) { v5_->finalize(comm.context); }

 private:
  /// The program's call, which returns before the group launches anything.
  template <typename Plugin, typename Descriptor>
  static void* call(Plugin* plugin, Descriptor& d, const Comm& comm, const char* function, std::size_t count,
                    const char* datatype, int root) {
    void* api = nullptr;
    d.type = collective_api_event;
    d.rank = comm.rank;
    d.collective_api = {function, count, datatype, root, nullptr, false};
    plugin->start_event(comm.context, &api, &d);
    if (api) plugin->stop_event(api);
    return api;
  }
  void* library_;
  PluginV6* v6_ = nullptr;
  PluginV5* v5_ = nullptr;
  PluginV4* v4_ = nullptr;
};

}  // namespace medley::nccl_profiler::test
