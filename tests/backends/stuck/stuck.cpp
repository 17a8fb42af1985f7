// A library that does not return: sending a message with tag 77 blocks while the file STUCK_WHILE exists. The control
// thread must still answer.
#include <unistd.h>

#include <cstdlib>

#include "backends/over_shm.hpp"

namespace {

using namespace medley;

class StuckLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "stuck";
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    const char* file = std::getenv("STUCK_WHILE");
    while (call.op == Op::send && call.tag == 77 && file && access(file, F_OK) == 0) usleep(1000);
    return mail_->start(call);
  }
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<StuckLane>::plugin(); }
