// More than 2^31 elements in one operation; only in the full suite, and if memory allows.
#include <algorithm>
#include <fstream>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

constexpr std::int64_t many = (std::int64_t{1} << 31) + 17;

std::int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::int64_t kibibytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// A byte that depends on all bits of its index, cheap enough for billions.
std::uint8_t value_at(std::int64_t i) {
  return static_cast<std::uint8_t>((static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u) >> 56);
}

void fill(std::vector<std::uint8_t>& values) {
  for (std::int64_t i = 0; i < many; ++i) values[static_cast<std::size_t>(i)] = value_at(i);
}

std::int64_t first_wrong(const std::vector<std::uint8_t>& values) {
  for (std::int64_t i = 0; i < many; ++i) {
    if (values[static_cast<std::size_t>(i)] != value_at(i)) return i;
  }
  return -1;
}

void with_two_huge_buffers(const std::function<void(Comm&, std::vector<std::uint8_t>&)>& body) {
  if (!full()) GTEST_SKIP() << "only with MEDLEY_TEST_FULL=1";
  if (available_bytes() < 3 * many) GTEST_SKIP() << "needs " << 3 * many / (1 << 20) << " MiB of free memory";
  with_ranks(
      2,
      [&](Comm& comm) {
        std::vector<std::uint8_t> values(static_cast<std::size_t>(many));
        if (comm.rank() == 0) fill(values);
        body(comm, values);
        EXPECT_EQ(first_wrong(values), -1);
        comm.barrier();
      },
      std::chrono::minutes(10));
}

TEST(Huge, broadcast_of_more_than_two_to_the_31_elements) {
  with_two_huge_buffers([](Comm& comm, std::vector<std::uint8_t>& values) { comm.broadcast(values, 0); });
}

TEST(Huge, message_of_more_than_two_to_the_31_elements) {
  with_two_huge_buffers([](Comm& comm, std::vector<std::uint8_t>& values) {
    if (comm.rank() == 0) comm.send(values, 1);
    if (comm.rank() == 1) comm.recv(values, 0);
  });
}

TEST(Huge, all_reduce_of_more_than_two_to_the_31_elements) {
  with_two_huge_buffers([](Comm& comm, std::vector<std::uint8_t>& values) { comm.all_reduce(values, max); });
}

}  // namespace
}  // namespace medley::conformance
