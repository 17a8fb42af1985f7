// A library that cannot cancel: its all_reduce never completes, and an abandoned one keeps its memory, as MPI's do.
// Counts what the test asks about, which finds the numbers by their names.
#include <atomic>

#include "backends/over_shm.hpp"

using namespace medley;

extern "C" {
__attribute__((visibility("default"))) std::atomic<int> started_all_reduces{0}, abandoned_with_memory{0},
    abandoned_without{0};
}

namespace {

class Kept final : public Transfer {
 public:
  explicit Kept(const void* out) : out_(out) { ++started_all_reduces; }
  Poll poll() override { return Poll::waiting; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    ++(memory && memory.get() == out_ ? abandoned_with_memory : abandoned_without);
    release();
  }

 private:
  const void* out_;  ///< what the library would still write
};

class KeepingLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "keeps";
  static bool native(Op op) { return op == Op::all_reduce; }
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    if (call.op == Op::all_reduce) return new Kept(call.out);
    return mail_->start(call);
  }
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<KeepingLane>::plugin(); }
