// How fast the device compresses: memory traffic of the kernels against that of a copy inside the device, and a tensor
// that is encoded into
// pinned memory against one that is copied there. In turn in one run; needs a GPU.   bench_device_codecs [rounds]
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <medley/sdk/device.hpp>
#include <string>
#include <vector>

#include "compress/frame.hpp"

namespace {

using namespace medley;

constexpr std::int64_t count = 64 << 20;  // f32: 256 MiB, more than the device's caches hold
constexpr double tensor_bytes = 4.0 * count;
constexpr int launches = 10;

struct Row {
  std::string name;
  double bytes;  ///< that one launch moves
  std::function<void()> launch;
  bool bus = false;
  std::vector<double> seconds{};
  double rate() {
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    return bytes / seconds[seconds.size() / 2] * 1e-9;
  }
};

double seconds(Device& device, void* stream, const std::function<void()>& launch) {
  const auto finish = [&] {
    void* const event = device.record(stream);
    while (!device.completed(event)) {
    }
    device.release_event(event);
  };
  finish();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) launch();
  finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / launches;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const std::unique_ptr<Device> device = open_device(0);
  if (!device->has_codecs()) return fmt::print("the device plugin was built without kernels of compression\n"), 1;
  void* const stream = device->make_stream();
  auto* const tensor = static_cast<float*>(device->allocate(4 * count));
  auto* const other = static_cast<float*>(device->allocate(4 * count));
  auto* const frame = static_cast<std::byte*>(device->allocate(4 * count));
  auto* const pinned = static_cast<std::byte*>(device->pinned(4 * count));
  std::vector<float> values(count);
  std::uint32_t state = 1;
  for (float& value : values)
    state = state * 1664525u + 1013904223u, value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  device->copy_now(tensor, values.data(), 4 * count);
  std::vector<Row> rows;
  rows.push_back({"copy inside the device", 2 * tensor_bytes, [&] { device->copy(other, tensor, 4 * count, stream); }});
  rows.push_back(
      {"copy to pinned memory", tensor_bytes, [&] { device->copy(pinned, tensor, 4 * count, stream); }, true});
  const std::pair<const char*, BlockCodec> codecs[] = {{"bf16", BlockCodec::bf16},
                                                       {"fp8_e4m3", BlockCodec::fp8_e4m3},
                                                       {"fp8_e5m2", BlockCodec::fp8_e5m2},
                                                       {"int8", BlockCodec::int8},
                                                       {"int4", BlockCodec::int4}};
  for (const auto& [name, codec] : codecs) {
    const DeviceFrame inside{codec, DType::f32, count, frame}, outside{codec, DType::f32, count, pinned};
    const auto frame_bytes =
        static_cast<double>(compress::most_frame_bytes(compress::codec(compress::parse_spec(name)), DType::f32, count));
    rows.push_back({fmt::format("{} encode", name), tensor_bytes + frame_bytes,
                    [&device, inside, tensor, stream] { device->encode(inside, tensor, nullptr, stream); }});
    rows.push_back({fmt::format("{} decode", name), tensor_bytes + frame_bytes,
                    [&device, inside, other, stream] { device->decode(inside, other, stream); }});
    rows.push_back({fmt::format("{} encode into pinned memory", name), tensor_bytes,
                    [&device, outside, tensor, stream] { device->encode(outside, tensor, nullptr, stream); }, true});
    rows.push_back({fmt::format("{} decode from pinned memory", name), tensor_bytes,
                    [&device, outside, other, stream] { device->decode(outside, other, stream); }, true});
  }
  for (int round = -1; round < rounds; ++round) {
    for (Row& row : rows) {
      const double taken = seconds(*device, stream, row.launch);
      if (round >= 0) row.seconds.push_back(taken);
    }
  }
  fmt::print("{}, 256 MiB of f32\n", device->name());
  const double copy = rows[0].rate(), bus = rows[1].rate();
  for (Row& row : rows) {
    fmt::print("{:<34} {:7.0f} GB/s {}  {:5.0f} % of {}\n", row.name, row.rate(),
               row.bus ? "of the tensor" : "of memory    ", 100 * row.rate() / (row.bus ? bus : copy),
               row.bus ? "the uncompressed copy" : "the copy");
  }
}
