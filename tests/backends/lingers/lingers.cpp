// A library whose operations fail at their first poll, and whose abort takes a while: until it is over, the library may
// write to the memory of its callers. The test finds the counters by their names.
#include <atomic>

#include "backends/over_shm.hpp"

using namespace medley;

extern "C" {
__attribute__((visibility("default"))) std::atomic<int> aborts_begun{0}, aborts_over{0};
}

namespace {

constexpr int polls_of_an_abort = 20;
constexpr int doomed_tag = 7;

class Doomed final : public Transfer {
 public:
  Poll poll() override { throw Error(ErrorKind::rank_lost, "the library lost a rank", {.ranks = {1}}); }
};

class LingeringLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "lingers";
  static bool native(Op op) { return op == Op::all_reduce; }
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    if (call.op == Op::all_reduce || call.tag == doomed_tag) return new Doomed;
    return mail_->start(call);
  }
  void abort(const Error& why) noexcept override {
    ++aborts_begun;
    mail_->abort(why);
  }
  bool poll_abort() noexcept override {
    if (polls_ == polls_of_an_abort) return true;
    if (++polls_ == polls_of_an_abort) ++aborts_over;
    return polls_ == polls_of_an_abort;
  }

 private:
  int polls_ = 0;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<LingeringLane>::plugin(); }
