#include "device/rank_device.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <medley/sdk/block_pool.hpp>

#include "bootstrap/environment.hpp"

namespace medley::core {
namespace {

RankDevice choose() {
  const Place place = find_place(process_environment()).value_or(Place{});
  const int turn = std::max(place.local_rank, 0), devices = device_count();
  // Slurm may show every rank only its own device; each then counts one.
  if (turn >= devices && place.source != Place::Source::slurm) {
    setenv("NCCL_HOSTID", fmt::format("process{}", getpid()).c_str(), 0);
  }
  return {turn % devices, *open_device(turn % devices).release()};
}

constexpr std::size_t least_block = 256;

BlockPool& pool() {
  static auto* const only = new BlockPool(SIZE_MAX, false);  // on the device
  return *only;
}

}  // namespace

const RankDevice& rank_device() {
  static const RankDevice chosen = choose();
  return chosen;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(std::bit_ceil(std::max(bytes, least_block))) {
  data_ = pool().take(bytes_);
  if (!data_) data_ = static_cast<std::byte*>(rank_device().device.allocate(bytes_));
}

DeviceMemory::~DeviceMemory() {
  if (data_) pool().keep(data_, bytes_);
}

void DeviceMemory::write(const void* from, std::size_t at, std::size_t bytes) const {
  if (bytes > 0) rank_device().device.copy_now(data_ + at, from, bytes);
}

void DeviceMemory::read(void* to, std::size_t at, std::size_t bytes) const {
  if (bytes > 0) rank_device().device.copy_now(to, data_ + at, bytes);
}

void wait_for_device() {
  Device& device = rank_device().device;
  void* const event = device.record(nullptr);
  while (!device.completed(event)) sched_yield();
  device.release_event(event);
}

}  // namespace medley::core
