// A transfer is released unless it is handed over.
#include <gtest/gtest.h>

#include <medley/sdk/transfer_ref.hpp>
#include <stdexcept>

namespace medley {
namespace {

class CountedTransfer final : public Transfer {
 public:
  CountedTransfer(int& released, int polls_needed) : released_(released), polls_needed_(polls_needed) {}
  Poll poll() override {
    if (polls_needed_ < 0) throw std::runtime_error("it fails");
    return polls_needed_-- <= 1 ? Poll::complete : Poll::waiting;
  }
  void release() noexcept override {
    ++released_;
    delete this;
  }

 private:
  int& released_;
  int polls_needed_;
};

TEST(TransferRef, ReleasesWhatIsNotHandedOver) {
  int released = 0;
  EXPECT_EQ(first_poll(TransferRef<CountedTransfer>(new CountedTransfer(released, 1))), nullptr);
  EXPECT_EQ(released, 1);
  EXPECT_THROW(first_poll(TransferRef<CountedTransfer>(new CountedTransfer(released, -1))), std::runtime_error);
  EXPECT_EQ(released, 2);
  Transfer* const pending = first_poll(TransferRef<CountedTransfer>(new CountedTransfer(released, 2)));
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(released, 2);
  EXPECT_EQ(pending->poll(), Poll::complete);
  pending->release();
  EXPECT_EQ(released, 3);
}

}  // namespace
}  // namespace medley
