// NCCL's profiler interface, versions 4 to 6, as far as this plugin uses it: the structs that NCCL passes
// and the symbols it looks up (ncclProfiler_v4 to ncclProfiler_v6). Declared here so that it builds without
// NCCL.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace medley::nccl_profiler {

// Kinds of events, as bits of a mask.
enum EventKind : std::uint64_t {
  group_event = 1 << 0,
  collective_event = 1 << 1,
  message_event = 1 << 2,
  kernel_channel_event = 1 << 6,
  group_api_event = 1 << 8,
  collective_api_event = 1 << 9,
  message_api_event = 1 << 10,
  copy_engine_event = 1 << 12,  ///< version 6: a collective that copy engines carry out, without a kernel
};

enum EventState : int { kernel_channel_stop = 22 };

using Result = int;  ///< ncclResult_t; 0: success
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

/// The descriptors of a collective and of a message; equal in both versions except for the last member of
/// version 5.
struct Collective {
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
  void* group;  ///< version 5
};
struct Message {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* group;  ///< version 5
};
struct CollectiveApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
};
struct MessageApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool captured;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t timer;  ///< GPU clock, ns
};

struct DescriptorV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      std::size_t count;
      int root;
      const char* datatype;
      std::uint8_t channels, warps;
      const char *algorithm, *protocol;
    } collective;
    struct {
      const char* function;
      void* buffer;
      const char* datatype;
      std::size_t count;
      int peer;
      std::uint8_t channels;
    } message;
    KernelChannel kernel_channel;
  };
};

struct DescriptorV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    CollectiveApi collective_api;
    MessageApi message_api;
    Collective collective;
    Message message;
    KernelChannel kernel_channel;
  };
};

/// Version 6 adds the collectives of the copy engines; what came before has the layout of version 5.
struct DescriptorV6 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    CollectiveApi collective_api;
    MessageApi message_api;
    Collective collective;
    Message message;
    KernelChannel kernel_channel;
    struct {
      std::uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      std::size_t count;
      int root;
      const char* datatype;
      const char* strategy;  ///< of their synchronisation: "MC" (multicast) or "UC"
      bool sync_in_batch;
      std::uint32_t batch_size, batches, number;
      void* stream;
    } copy_engine;
  };
};

union StateArguments {
  std::size_t size;
  void* data;
  std::uint64_t timer;  ///< of a kernel channel
};

struct PluginV4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash, int nodes, int ranks,
                 int rank, Logger log);
  Result (*start_event)(void* context, void** event, DescriptorV4* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_state)(void* event, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};

template <typename Descriptor>
struct PluginSince5 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm_hash, int* mask, const char* comm_name, int nodes, int ranks,
                 int rank, Logger log);
  Result (*start_event)(void* context, void** event, Descriptor* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_state)(void* event, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};
using PluginV5 = PluginSince5<DescriptorV5>;
using PluginV6 = PluginSince5<DescriptorV6>;

}  // namespace medley::nccl_profiler
