// A backend that can only send and receive (over shm's tag matcher), so that every collective is filled in: for testing
// the algorithms.
#include <stdexcept>

#include "backends/over_shm.hpp"

namespace {

using namespace medley;

class PlainLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "plain";
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    if (call.op != Op::send && call.op != Op::recv) throw std::logic_error("a plain lane was given a collective");
    return mail_->start(call);
  }
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<PlainLane>::plugin(); }
