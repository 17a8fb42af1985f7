#include "backends/ucx/config.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "backends/ucx/status.hpp"

namespace medley::ucx {
namespace {

// Between ranks of one host UCX would also open TCP. Where it may not read a peer's memory (CMA, which containers often
// forbid), it uses TCP for large messages, since that can send them without a copy: 64 KiB took 61 µs instead of 5.
// Each poll of TCP is a system call, too.
constexpr const char* shared_memory = "shm,self";
// Below it a message is eager: copied into the segment and out of it. From there on it is a rendezvous with one copy.
// UCX estimates 8 to 16 KiB. Two ranks, µs one way: on an EPYC guest 16 KiB 1.9 eager, 3.3 rendezvous; 64 KiB 5.2 and
// 6.3; on an Intel Xeon guest with 16 cores 16 KiB 3.9 and 4.0, 64 KiB 9.3 and 6.9.
constexpr const char* least_rendezvous = "32769";

}  // namespace

Config read_config(bool one_host) {
  ucp_config_t* read = nullptr;
  require(ucp_config_read(nullptr, nullptr, &read), "read its configuration (the variables UCX_…)");
  Config config(read, &ucp_config_release);
  if (!one_host || value_of(config, "TLS") != "all") return config;
  require(ucp_config_modify(read, "TLS", shared_memory), "choose shared memory");
  if (value_of(config, "RNDV_THRESH") == "auto") {
    require(ucp_config_modify(read, "RNDV_THRESH", least_rendezvous), "set the size of its rendezvous");
  }
  return config;
}

std::size_t copied_below(const Config& config) {
  if (value_of(config, "TLS") != shared_memory) return 0;
  const std::string limit = value_of(config, "RNDV_THRESH");
  std::size_t bytes = 0;
  const auto [end, problem] = std::from_chars(limit.data(), limit.data() + limit.size(), bytes);
  return problem == std::errc() && end == limit.data() + limit.size() ? bytes : 0;
}

std::string value_of(const Config& config, const std::string& name) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* file = open_memstream(&text, &bytes);
  if (!file) return {};
  ucp_config_print(config.get(), file, nullptr, UCS_CONFIG_PRINT_CONFIG);
  std::fclose(file);
  const std::string all = "\n" + std::string(text, bytes);
  std::free(text);
  const std::string key = "\nUCX_" + name + "=";
  const std::size_t found = all.find(key);
  if (found == all.npos) return {};
  const std::size_t begin = found + key.size();
  return all.substr(begin, all.find('\n', begin) - begin);
}

}  // namespace medley::ucx
