// NCCL's tuner interface, versions 3 to 5, as far as this plugin uses it: the function tables that NCCL looks up
// (ncclTunerPlugin_v3, _v4, _v5). Declared here so that it builds without NCCL.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::nccl_tuner {

using Result = int;  ///< ncclResult_t; 0: success
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

/// ncclFunc_t.
enum class Function : int { broadcast = 0, reduce = 1, all_gather = 2, reduce_scatter = 3, all_reduce = 4 };

/// The cost of algorithm and protocol that NCCL may not use for this call.
inline constexpr float ignored = -1.0f;

/// The interface's costs are a dense array [algorithms][protocols] behind a pointer of another type.
using CostTable = float**;

struct PluginV3 {  // NCCL 2.22 to 2.25
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get_collective)(void* context, Function function, std::size_t bytes, int grouped, CostTable costs,
                           int algorithms, int protocols, int* channels);
  Result (*destroy)(void* context);
};

struct PluginV4 {  // NCCL 2.26 and 2.27
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get_collective)(void* context, Function function, std::size_t bytes, int grouped, CostTable costs,
                           int algorithms, int protocols, int registered, int* channels);
  Result (*destroy)(void* context);
};

struct PluginV5 {  // NCCL 2.28 and later
  const char* name;
  Result (*init)(void** context, std::uint64_t comm, std::size_t ranks, std::size_t nodes, Logger log,
                 void* nvlink_domains, void* constants);
  Result (*get_collective)(void* context, Function function, std::size_t bytes, int grouped, CostTable costs,
                           int algorithms, int protocols, int registered, int* channels);
  Result (*finalize)(void* context);
};

}  // namespace medley::nccl_tuner
