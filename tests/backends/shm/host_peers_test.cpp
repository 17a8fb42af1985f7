// What the ranks of a host publish about themselves is checked when it is read.
#include "backends/shm/host_peers.hpp"

#include <gtest/gtest.h>

#include <string>

namespace medley::shm {
namespace {

std::string refusal_of(const std::string& published) {
  BackendParams params;
  params.size = 2;
  params.hosts = {"here", "here"};
  params.cores = 2;
  params.store = make_local_store();
  params.store->set("neighbour/process/1", published);
  params.deadline = deadline_after(std::chrono::seconds(60));
  try {
    const HostPeers peers(params);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(HostPeers, RefusesATextThatIsNotAProcessAndAnAddress) {
  for (const char* text : {"", "nonsense", "17", "17 ", "17 18 19", " 17 18", "99999999999 18", "17 -18"}) {
    const std::string refusal = refusal_of(text);
    EXPECT_NE(refusal.find("rank 1 published \"" + std::string(text) + "\""), std::string::npos) << refusal;
  }
}

}  // namespace
}  // namespace medley::shm
