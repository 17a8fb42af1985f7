// A backend that throws what the engine does not know, wherever a backend is called: a library's own exceptions, and things
// that are no exceptions at all. Used by the tests of plugins.
#include "backends/explodes/explodes.hpp"

#include <new>
#include <stdexcept>

#include "backends/over_shm.hpp"

namespace {

using namespace medley;

class ExplodingTransfer final : public Transfer {
 public:
  Poll poll() override { throw std::out_of_range("the library lost count in poll"); }
};

class ExplodingLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "explodes";
  using MailLane::MailLane;

  Transfer* start(const Call& call) override {
    if (call.tag == test::in_start) throw std::runtime_error("the library refused in start");
    if (call.tag == test::in_poll) return new ExplodingTransfer;
    in_progress_ = in_progress_ || call.tag == test::in_progress;
    in_check_ = in_check_ || call.tag == test::in_check;
    return mail_->start(call);
  }
  void progress() override {
    if (in_progress_) throw std::bad_alloc();
    MailLane::progress();
  }
  void check() override {
    if (in_check_) throw 42;
    MailLane::check();
  }

 private:
  bool in_progress_ = false, in_check_ = false;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return medley::test::OverShm<ExplodingLane>::plugin(); }
