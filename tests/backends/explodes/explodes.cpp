// A backend that throws unknown types wherever a backend is called: a library's own exceptions, and values that are not
// exceptions at all. For the tests of plugins.
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

/// A receive that fails its comm, and records when its memory is released.
class LostTransfer final : public Transfer {
 public:
  LostTransfer(const bool& aborted, void* out) : aborted_(aborted), out_(static_cast<float*>(out)) {}
  Poll poll() override { throw Error(ErrorKind::rank_lost, "the library lost rank 1", {.ranks = {1}}); }
  void release() noexcept override {
    *out_ = aborted_ ? test::given_back_after_abort : test::given_back_before_abort;
    delete this;
  }

 private:
  const bool& aborted_;  // the lane's flag
  float* out_;
};

class ExplodingLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "explodes";
  using MailLane::MailLane;

  Transfer* start(const Call& call) override {
    if (call.tag == test::in_start) throw std::runtime_error("the library refused in start");
    if (call.tag == test::in_poll) return new ExplodingTransfer;
    if (call.tag == test::lost_in_poll) return new LostTransfer(aborted_, call.out);
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
  void abort(const Error& why) noexcept override {
    aborted_ = true;
    MailLane::abort(why);
  }

 private:
  bool in_progress_ = false, in_check_ = false, aborted_ = false;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return medley::test::OverShm<ExplodingLane>::plugin(); }
