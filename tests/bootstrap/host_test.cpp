#include "bootstrap/host.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bootstrap/binding.hpp"

namespace medley {
namespace {

namespace fs = std::filesystem;

// host_identity() in a child that has entered new namespaces; "" when this user may not do that.
std::string identity_in_new_namespaces(int flags) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    std::string identity;
    if (unshare(flags) == 0) {
      if (flags & CLONE_NEWPID) {  // a new pid namespace applies to the next child, not the caller
        const pid_t inner = fork();
        if (inner != 0) {
          waitpid(inner, nullptr, 0);
          _exit(0);
        }
      }
      identity = host_identity();
    }
    (void)!write(ends[1], identity.data(), identity.size());
    _exit(0);
  }
  close(ends[1]);
  std::string identity(4096, '\0');
  const ssize_t got = read(ends[0], identity.data(), identity.size());
  identity.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return identity;
}

TEST(HostIdentity, IsTheSameForAChild) { EXPECT_EQ(identity_in_new_namespaces(0), host_identity()); }

class Namespaces : public testing::TestWithParam<int> {};

TEST_P(Namespaces, OtherNamespacesAreNoNeighbours) {
  const std::string identity = identity_in_new_namespaces(GetParam());
  if (identity.empty()) GTEST_SKIP() << "this user may not make namespaces";
  EXPECT_NE(identity, host_identity());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Namespaces, testing::Values(CLONE_NEWNET, CLONE_NEWUSER, CLONE_NEWPID));

TEST(HostName, IsNotEmpty) { EXPECT_FALSE(host_name().empty()); }

class Cgroups : public testing::Test {
 protected:
  Cgroups() { fs::create_directories(root_); }
  ~Cgroups() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int cores(int affinity) const { return usable_cores(affinity, root_ / "own", root_); }
  const fs::path root_ = fs::temp_directory_path() / ("medley-cgroups-" + std::to_string(getpid()));
};

TEST_F(Cgroups, WithoutAQuotaAffinityDecides) {
  EXPECT_EQ(cores(6), 6);
  file("own", "0::/user.slice\n");
  file("user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(6), 6);
}

TEST_F(Cgroups, Version2QuotasOfAllAncestorsCount) {
  file("own", "0::/pod/container\n");
  file("pod/container/cpu.max", "800000 100000\n");
  EXPECT_EQ(cores(16), 8);
  file("pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(cores(16), 3);
  EXPECT_EQ(cores(2), 2);
}

TEST_F(Cgroups, APartOfACoreCountsAsOne) {
  file("own", "0::/\n");
  file("cpu.max", "50000 100000\n");
  EXPECT_EQ(cores(16), 1);
}

TEST_F(Cgroups, Version1QuotasCount) {
  file("own", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n");
  file("cpu/docker/x/cpu.cfs_quota_us", "-1\n");
  file("cpu/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(16), 16);
  file("cpu/cpu.cfs_quota_us", "400000\n");
  file("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(16), 4);
}

TEST(UsableCores, FollowTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &before)) {
      CPU_SET(core, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
}

TEST_F(Cgroups, RanksTakeOneThreadOfEveryCoreFirst) {
  EXPECT_EQ(binding_order("1111", root_), (std::vector<int>{0, 1, 2, 3})) << "the system does not say";
  const auto siblings = [&](int cpu, const std::string& list) {
    file("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list + "\n");
  };
  for (int cpu : {0, 1}) siblings(cpu, "0-1");
  for (int cpu : {2, 3}) siblings(cpu, "2-3");
  EXPECT_EQ(binding_order("1111", root_), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(binding_order("0111", root_), (std::vector<int>{1, 2, 3})) << "its sibling is not ours";
  for (int cpu = 0; cpu < 4; ++cpu) siblings(cpu, cpu % 2 == 0 ? "0,2" : "1,3");
  EXPECT_EQ(binding_order("1111", root_), (std::vector<int>{0, 1, 2, 3}));
}

TEST(ShareOfCores, IsAPartOfTheMachineByTheNumberOfRanks) {
  const std::string low = "1100", high = "0011";
  EXPECT_EQ(share_of_cores({low, low}, {low, low}), std::min(2, cores_together({low})));
  EXPECT_EQ(share_of_cores({low, low}, {low, low, low, low}), 1) << "two hosts on the same two cores";
  EXPECT_EQ(share_of_cores({low, low}, {low, low, high, high}), cores_together({low})) << "each has its own two";
  EXPECT_EQ(share_of_cores({low}, {low, low, low, low}), 1) << "never less than one";
}

}  // namespace
}  // namespace medley
