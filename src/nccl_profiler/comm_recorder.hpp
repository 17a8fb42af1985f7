// Writes the operations that NCCL reports into Medley's record file: one Recorder per process, one
// CommRecorder per NCCL communicator. The plugin's functions call it, from any NCCL thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record/recorder.hpp"

namespace medley::nccl_profiler {

/// An NCCL call, with the program's counts and types where the interface gives them.
struct Call {
  const char* function = "";
  const char* datatype = "";
  std::size_t count = 0;
  int root = -1;  ///< or the peer of a message
  int channels = 0, ranks = 1;
  const char *algorithm = "", *protocol = "";
  bool bytes_only = false;  ///< the datatype is not the program's: NCCL has already converted elements to bytes
  bool call_only = false;   ///< NCCL does not report when it ends on the GPU
};

class ProcessRecorder;

/// An event that NCCL refers to by a handle.
struct Handle {
  enum class Kind : std::uint8_t { free, operation, channel, api, group } kind = Kind::free;
  ProcessRecorder* process = nullptr;
  std::uint64_t record = 0;       ///< operation: index of its record
  Handle* parent = nullptr;       ///< channel: its operation
  Call call;                      ///< api: the call
  int channels = 0, stopped = 0;  ///< operation: expected and finished
  bool host_done = false;         ///< operation: NCCL has launched it
  bool call_only = false;         ///< operation: as in Call
  std::uint64_t gpu_begin = 0,
                gpu_end = 0;  ///< GPU clock, ns: of a channel, or of all channels of an operation
};

class ProcessRecorder {
 public:
  ProcessRecorder(int rank, int size, const std::string& job);

  std::uint32_t comm(std::uint64_t hash, const char* name, int ranks, int rank);
  Handle* operation(std::uint32_t comm, std::uint64_t& collectives, std::uint64_t& messages, const Call& call);
  Handle* channel(Handle* operation, std::uint64_t timer);
  Handle* api(const Call& call);
  Handle* group();
  void channel_timer(Handle* channel, std::uint64_t timer);
  void stop(Handle* handle);

 private:
  Handle* take(Handle::Kind kind);
  void give_back(Handle* handle);
  void finish(Handle* operation);
  struct KnownAlgorithm {
    const char *algorithm, *protocol;
    std::uint8_t number;
  };
  std::uint8_t algorithm(const char* algorithm, const char* protocol);
  std::vector<KnownAlgorithm> algorithms_;
  std::mutex mutex_;
  core::Recorder recorder_;
  std::uint32_t backend_;
  int rank_, size_;
  double ns_per_tick_;
  std::deque<Handle> handles_;
  std::vector<Handle*> free_;
  std::deque<Handle*> ended_calls_;
};

/// One communicator.
struct CommRecorder {
  std::shared_ptr<ProcessRecorder> process;
  std::uint32_t comm = 0;
  int ranks = 1;
  std::uint64_t collectives = 0, messages = 0;
};

/// The recorder of this process, made with its first communicator. `rank` and `size` are used when no
/// launcher gives the job's. Null when recording is off.
std::shared_ptr<ProcessRecorder> process_recorder(int rank, int size);

}  // namespace medley::nccl_profiler
