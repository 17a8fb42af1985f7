// What every program in this folder measures: messages between two ranks, over whatever carries them. A Link
// has
//   int rank();
//   void send(std::span<const std::byte>, int tag);
//   void recv(std::span<std::byte>, int tag);
//   void exchange(std::span<Message>);     // all receives and sends under way at once; returns when all are
//   complete
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/rows.hpp"
#include "tune/statistics.hpp"

namespace medley::bench {

/// One message each way, with the same tag.
struct Message {
  std::span<const std::byte> out;
  std::span<std::byte> in;
  int tag;
};

struct MessageRow {
  std::string op;
  std::size_t bytes;
  int batch;
  tune::Summary us;
  std::size_t samples;
};

inline constexpr std::array<std::size_t, 8> ping_pong_sizes{8, 64, 512, 4096, 16384, 65536, 262144, 1 << 20};
inline constexpr std::array<int, 2> windows{8, 64};
inline constexpr std::size_t window_bytes = 24;

/// Memory of both ranks' messages, filled by the sender's rank so that a wrong one is seen.
class Blocks {
 public:
  Blocks(int count, std::size_t bytes, int rank) : out_(count * bytes), in_(out_.size()), rank_(rank) {
    for (int i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * bytes;
      std::memset(&out_[at], pattern(rank, i), bytes);
      messages_.push_back({{&out_[at], bytes}, {&in_[at], bytes}, i});
    }
  }
  std::span<Message> all() { return messages_; }
  void check() const {
    for (const Message& message : messages_) {
      const auto wrong = [&](std::byte b) { return b != std::byte(pattern(1 - rank_, message.tag)); };
      if (std::any_of(message.in.begin(), message.in.end(), wrong)) throw std::runtime_error("a message arrived wrong");
    }
  }

 private:
  static unsigned char pattern(int rank, int tag) { return static_cast<unsigned char>(1 + 101 * rank + tag); }
  std::vector<std::byte> out_, in_;
  std::vector<Message> messages_;
  int rank_;
};

/// Times of `round` in µs. Rank 0 times and decides how often; a sample has rounds for some 10 µs, above what
/// a clock costs.
template <class Link, class Round>
MessageRow measure(Link& link, double seconds, Round round) {
  using clock = std::chrono::steady_clock;
  const auto rounds = [&](int count) {
    const auto begin = clock::now();
    for (int i = 0; i < count; ++i) round();
    return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
  };
  rounds(50);  // connections are made, memory is touched
  const double each = rounds(50) / 50;
  std::array<std::int32_t, 2> plan{};  // samples, rounds in each
  if (link.rank() == 0) {
    plan[1] = std::clamp(static_cast<int>(10 / each), 1, 100);
    plan[0] = std::clamp(static_cast<int>(seconds * 1e6 / (each * plan[1])), 20, 20'000);
    link.send(std::as_bytes(std::span(plan)), 0);
  } else {
    link.recv(std::as_writable_bytes(std::span(plan)), 0);
  }
  std::vector<double> samples;
  for (int i = 0; i < plan[0]; ++i) samples.push_back(rounds(plan[1]) / plan[1]);
  return {{}, 0, plan[1], tune::summarize(samples), samples.size()};
}

template <class Link>
std::vector<MessageRow> measure_all(Link& link, double seconds) {
  std::vector<MessageRow> rows;
  for (const std::size_t bytes : ping_pong_sizes) {
    Blocks blocks(1, bytes, link.rank());
    const Message message = blocks.all().front();
    MessageRow row = measure(link, seconds, [&] {
      if (link.rank() == 0) link.send(message.out, 0);
      link.recv(message.in, 0);
      if (link.rank() != 0) link.send(message.out, 0);
    });
    blocks.check();
    for (double* us : {&row.us.median, &row.us.mad, &row.us.p99}) *us /= 2;  // one way, as usual
    row.op = "ping_pong";
    row.bytes = bytes;
    rows.push_back(row);
  }
  for (const int window : windows) {
    Blocks blocks(window, window_bytes, link.rank());
    MessageRow row = measure(link, seconds, [&] { link.exchange(blocks.all()); });
    blocks.check();
    row.op = "window_" + std::to_string(window);
    row.bytes = window_bytes;
    rows.push_back(row);
  }
  return rows;
}

/// Measures and, on rank 0, prints rows in the manner of `medley bench --json`.
template <class Link>
void report(Link& link, const std::string& backend, const std::string& version, const Options& options) {
  const std::vector<MessageRow> rows = measure_all(link, options.measure.seconds);
  if (link.rank() != 0) return;
  std::printf("{\"ranks\": 2, \"version\": %s, \"rows\": [", quoted(version).c_str());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MessageRow& row = rows[i];
    std::printf(
        "%s\n  {\"op\": \"%s\", \"backend\": %s, \"bytes\": %zu, \"median_us\": %.4f, \"mad_us\": %.4f, "
        "\"p99_us\": %.4f, "
        "\"iterations\": %zu, \"batch\": %d}",
        i ? "," : "", row.op.c_str(), quoted(backend).c_str(), row.bytes, row.us.median, row.us.mad, row.us.p99,
        row.samples, row.batch);
  }
  std::printf("\n]}\n");
  std::fflush(stdout);
}

}  // namespace medley::bench
