// Medley's overhead over UCX: a ping-pong and the messages of an all_reduce, through Medley and with the same
// direct UCP calls, interleaved in one run of two ranks. Exit 1 when Medley takes more than 5 % or 0.3 µs
// longer, whichever is more.
//   medley run -n 2 bench_ucx_overhead
#include <fmt/format.h>
#include <sched.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <medley/medley.hpp>
#include <vector>

namespace {

using namespace medley;
using std::chrono::steady_clock;

void require(ucs_status_t status) {
  if (status != UCS_OK) throw Error(ErrorKind::system, ucs_status_string(status));
}

/// Direct UCP: a worker and the endpoint to the other rank, whose address arrives through Medley.
class Direct {
 public:
  explicit Direct(Comm& comm) {
    ucp_config_t* config = nullptr;
    require(ucp_config_read(nullptr, nullptr, &config));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    require(ucp_init(&params, config, &context_));
    ucp_config_release(config);
    ucp_worker_params_t serialized{};
    serialized.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    serialized.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    require(ucp_worker_create(context_, &serialized, &worker_));
    connect(comm);
  }
  ~Direct() {
    ucp_request_param_t none{};
    wait(ucp_ep_close_nbx(endpoint_, &none));
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;

  void* send(const void* data, std::size_t bytes) { return ucp_tag_send_nbx(endpoint_, data, bytes, 1, &host_); }
  void* recv(void* data, std::size_t bytes) { return ucp_tag_recv_nbx(worker_, data, bytes, 1, ~ucp_tag_t{0}, &host_); }
  void wait(void* request) {
    if (!UCS_PTR_IS_PTR(request)) return require(UCS_PTR_STATUS(request));
    for (int idle = 0; ucp_request_check_status(request) == UCS_INPROGRESS;) {
      // Beyond some 20 µs the peer may need this core, as Medley's own waiting assumes.
      if (ucp_worker_progress(worker_) == 0 && ++idle > 2000) sched_yield();
    }
    ucp_request_free(request);
  }

 private:
  void connect(Comm& comm) {
    ucp_address_t* own = nullptr;
    std::size_t bytes = 0;
    require(ucp_worker_get_address(worker_, &own, &bytes));
    std::vector<std::uint8_t> mine(4096), both(mine.size() * static_cast<std::size_t>(comm.size()));
    std::copy_n(reinterpret_cast<const std::uint8_t*>(own), std::min(bytes, mine.size()), mine.begin());
    ucp_worker_release_address(worker_, own);
    comm.all_gather(mine, both);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(both.data() + (comm.size() - 1 - comm.rank()) * 4096);
    require(ucp_ep_create(worker_, &params, &endpoint_));
    host_.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    host_.memory_type = UCS_MEMORY_TYPE_HOST;
  }
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_request_param_t host_{};
};

double microseconds_each(int times, const std::function<void()>& call) {
  const auto begin = steady_clock::now();
  for (int i = 0; i < times; ++i) call();
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count() / times;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Race {
  const char* what;
  int messages;       ///< one after the other; the figure is one's
  double allowed_us;  ///< that Medley may take longer, or 5 %
};
constexpr Race to_self{"to_self", 1, 0.1}, ping_pong{"ping_pong", 2, 0.1}, all_reduce{"all_reduce", 1, 0.3};

/// The medians of many short turns, taken alternately. Rank 0 judges: it sees both directions.
bool compare(Comm& comm, const Race& race, std::size_t bytes, const std::function<void()>& direct,
             const std::function<void()>& through) {
  const int times = bytes <= 16384 ? 100 : bytes <= 262144 ? 10 : 2;
  std::vector<double> by_hand, by_medley;
  for (int turn = 0; turn < 42; ++turn) {
    comm.barrier();
    const double first = microseconds_each(times, turn % 2 ? direct : through);
    comm.barrier();
    const double second = microseconds_each(times, turn % 2 ? through : direct);
    if (turn < 2) continue;  // connections are made
    by_hand.push_back(turn % 2 ? first : second);
    by_medley.push_back(turn % 2 ? second : first);
  }
  const double hand = median(by_hand) / race.messages, medley = median(by_medley) / race.messages;
  const bool good = medley - hand <= std::max(race.allowed_us, 0.05 * hand);
  if (comm.rank() == 0) {
    fmt::print("{:<12}{:>10}{:>12.2f}{:>12.2f}{:>+10.2f}  {}\n", race.what, bytes, hand, medley, medley - hand,
               good ? "" : "above the bound");
    std::fflush(stdout);
  }
  return good;
}

}  // namespace

int main() {
  try {
    // What Medley chooses within a host (src/backends/ucx/config.cpp), so that both ways have it.
    setenv("UCX_TLS", "shm,self", 0);
    setenv("UCX_RNDV_THRESH", "65537", 0);
    Context context(std::vector<std::string>{"ucx"});
    Comm comm = context.world();
    if (comm.size() > 2)
      throw Error(ErrorKind::invalid, "one or two ranks are needed: medley run -n 2 bench_ucx_overhead");
    Direct direct(comm);
    const int peer = comm.size() - 1 - comm.rank();
    bool good = true;
    if (comm.rank() == 0)
      fmt::print("{:<12}{:>10}{:>12}{:>12}{:>10}\n", "what", "bytes", "UCP µs", "Medley µs", "more µs");
    for (std::size_t bytes = 4; bytes <= (4 << 20); bytes *= 8) {
      const std::size_t count = bytes / sizeof(float);
      std::vector<float> in(count, 1.0f), out(count);
      if (comm.size() == 1) {  // both ends in one rank: the cost of the calls, on a machine too busy for two
        if (bytes > 4096) break;
        good &= compare(
            comm, to_self, bytes,
            [&] {
              direct.wait(direct.send(in.data(), bytes));
              direct.wait(direct.recv(out.data(), bytes));
            },
            [&] {
              comm.send(in, peer);
              comm.recv(out, peer);
            });
        continue;
      }
      good &= compare(
          comm, ping_pong, bytes,
          [&] {
            if (comm.rank() == 0) direct.wait(direct.send(in.data(), bytes));
            direct.wait(direct.recv(out.data(), bytes));
            if (comm.rank() == 1) direct.wait(direct.send(in.data(), bytes));
          },
          [&] {
            if (comm.rank() == 0) comm.send(in, peer);
            comm.recv(out, peer);
            if (comm.rank() == 1) comm.send(in, peer);
          });
      std::vector<float> theirs(count);
      good &= compare(
          comm, all_reduce, bytes,
          [&] {
            void* arriving = direct.recv(theirs.data(), bytes);
            direct.wait(direct.send(in.data(), bytes));
            direct.wait(arriving);
            for (std::size_t i = 0; i < count; ++i) out[i] = in[i] + theirs[i];
          },
          [&] { comm.all_reduce(in, out, sum, {.algorithm = "recursive_doubling"}); });
    }
    comm.barrier();
    return good || comm.rank() != 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ucx_overhead: {}\n", error.what());
    return 2;
  }
}
