#include "backends/gloo/mesh.hpp"

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>

#include <future>

#include "backends/gloo/no_pipe_signal.hpp"

namespace medley::gloo_backend {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds left_until(Deadline deadline) {
  return std::clamp(std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()), milliseconds(1),
                    no_limit);
}

}  // namespace

Mesh::Mesh(const CommParams& params, const std::shared_ptr<::gloo::transport::Device>& device,
           const std::vector<std::string>& hosts)
    : Context(params.rank, params.size),
      transport_(std::make_shared<EndableTransport>(*device, params.rank, params.size)) {
  const NoPipeSignal quiet;
  device_ = device;
  transportContext_ = transport_;
  setTimeout(no_limit);
  transport_->setTimeout(
      std::max(milliseconds(1), left_until(params.deadline) / 5));  // Gloo waits five times this long
  meet(params, params.all_gather(offer()), hosts);
}

/// Every pair listens as soon as it is made; its address goes to all ranks.
std::string Mesh::offer() {
  std::string addresses;  // one for every other rank, in order, all of one length
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    const std::vector<char> address = transport_->createPair(r)->address().bytes();
    addresses.append(address.begin(), address.end());
  }
  return fmt::format("{} {}", getpid(), addresses);
}

void Mesh::meet(const CommParams& params, const std::vector<std::string>& offers,
                const std::vector<std::string>& hosts) {
  const auto host_of = [&](int r) {
    return hosts[static_cast<std::size_t>(params.world_ranks[static_cast<std::size_t>(r)])];
  };
  std::vector<std::vector<char>> theirs(static_cast<std::size_t>(size));
  processes_.resize(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    const std::string& theirs_all = offers[static_cast<std::size_t>(r)];
    if (host_of(r) == host_of(rank)) processes_[static_cast<std::size_t>(r)] = ProcessWatch(std::stoi(theirs_all));
    const std::string list = theirs_all.substr(theirs_all.find(' ') + 1);
    const std::size_t each = list.size() / static_cast<std::size_t>(size - 1);
    const std::string own = list.substr(static_cast<std::size_t>(rank < r ? rank : rank - 1) * each, each);
    theirs[static_cast<std::size_t>(r)].assign(own.begin(), own.end());
  }
  // All members are here now. Connecting blocks, until the deadline at most; other comms progress meanwhile.
  std::atomic<int> reached = 0;
  auto connecting = std::async(std::launch::async, [&] {
    for (int r = 0; r < size; ++r) {
      reached = r;
      if (r != rank) getPair(r)->connect(theirs[static_cast<std::size_t>(r)]);
    }
  });
  while (connecting.wait_for(std::chrono::microseconds(200)) != std::future_status::ready) params.progress();
  try {
    connecting.get();
  } catch (const std::exception& error) {
    const bool late = steady_clock::now() > params.deadline - std::chrono::milliseconds(5);
    throw Error(late ? ErrorKind::timeout : ErrorKind::rank_lost,
                fmt::format("comm {}: no connection to rank {}: {}", params.name, reached.load(), error.what()),
                {.comm = params.name, .backend = "gloo", .ranks = {reached.load()}});
  }
}

}  // namespace medley::gloo_backend
