// The mpi backend: what MPI supports natively, which ranks it connects, and how a comm gets its lane.
#include <fmt/format.h>
#include <medley/sdk/polled_event_count.hpp>

#include "backends/mpi/alone_lane.hpp"
#include "backends/mpi/collectives.hpp"
#include "backends/mpi/connect.hpp"
#include "backends/mpi/main_thread_lane.hpp"
#include "backends/mpi/plugin.hpp"
#include "backends/mpi/reductions.hpp"

namespace medley::mpi {
namespace {

class MpiBackend final : public Backend {
 public:
  MpiBackend(const BackendParams& params, bool in_a_job)
      : in_a_job_(in_a_job),
        hosts_(params.hosts),
        store_(params.store),
        members_(join(params)),
        event_count_(in_a_job && params.oversubscribed() ? BackoffPolicy{0, 200, true}
                                                         : BackoffPolicy{200, 2000, false}) {}

  std::string_view name() const override { return "mpi"; }
  std::string version() const override { return Library::version(); }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const override {
    return memory == Memory::host && collective_is_native(op) && (!reduces(op) || reduces_natively(dtype, reduce));
  }
  std::string refuses(const std::vector<int>&) const override { return {}; }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    if (!in_a_job_) return std::make_unique<AloneLane>(params);
    Library& library = Library::of_process();
    library.require_usable();
    require_right_thread(library);
    std::vector<int> mpi_ranks;
    for (int r : params.world_ranks) mpi_ranks.push_back(members_.mpi_ranks[static_cast<std::size_t>(r)]);
    const Communicators comms = connect_members(params, mpi_ranks, *store_);
    auto lane = std::make_unique<MpiLane>(comms, params, std::move(mpi_ranks), far(params));
    if (!library.one_thread_only()) return lane;
    return std::make_unique<MainThreadLane>(std::move(lane));
  }
  EventCount* event_count() override { return &event_count_; }
  // MPI only recommends that a reduction repeated on the same ranks gives the same bits.
  bool fixed_order() const override { return false; }
  // Open MPI's nonblocking reductions take up to twice as long as ours over its messages.
  bool has(Trait trait) const override { return trait == Trait::slow_reductions; }
  void rank_lost(int world_rank) noexcept override {
    if (in_a_job_) Library::of_process().lose(members_.mpi_ranks[static_cast<std::size_t>(world_rank)]);
  }

 private:
  static void require_right_thread(const Library& library) {
    if (!library.wrong_thread()) return;
    throw Error(ErrorKind::invalid,
                "MPI was initialised below MPI_THREAD_SERIALIZED, so contexts and comms over mpi are made by "
                "the thread "
                "that initialised it");
  }

  Members join(const BackendParams& params) const {
    if (!in_a_job_) return {.mpi_ranks = {0}};
    try {
      Library& library = Library::of_process();
      library.start();
      require_right_thread(library);
      library.remember_farewell(params);
    } catch (const std::exception& error) {
      tell_failure(params, error.what());
      throw;
    }
    return meet_members(params);
  }

  bool far(const CommParams& params) const {
    for (int r : params.world_ranks) {
      if (hosts_[static_cast<std::size_t>(r)] != hosts_[static_cast<std::size_t>(params.world_ranks.front())])
        return true;
    }
    return false;
  }

  bool in_a_job_;
  std::vector<std::string> hosts_;
  std::shared_ptr<Store> store_;
  Members members_;
  PolledEventCount event_count_;
};

}  // namespace
}  // namespace medley::mpi

extern "C" MEDLEY_API std::unique_ptr<medley::Backend> medley_mpi_create(const medley::BackendParams& params,
                                                                         bool in_a_job) {
  return std::make_unique<medley::mpi::MpiBackend>(params, in_a_job);
}
