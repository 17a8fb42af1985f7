// Compressed collectives whose parts travel in several segments: how they travel changes no bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "compress/rank_values.hpp"
#include "harness/ranks.hpp"

namespace medley::compress::test {
namespace {

using medley::test::run_threads;

/// What the compressed all_reduce of two ranks is by definition, chunk by chunk: each half belongs to one rank, which
/// adds what the other's values decode to, and encodes the sum.
std::vector<float> sum_by_definition(const Codec& codec, std::int64_t n) {
  const std::vector<float> of[] = {values_of(0, n), values_of(1, n)};
  const auto rounded = [&](std::span<const float> chunk) {
    std::vector<std::byte> coded(codec.most_bytes(chunk.size(), sizeof(float)));
    std::vector<float> decoded(chunk.size());
    const std::size_t bytes = codec.encode(chunk.data(), chunk.size(), sizeof(float), coded.data());
    codec.decode(std::span(coded).first(bytes), decoded.data(), chunk.size(), sizeof(float));
    return decoded;
  };
  std::vector<float> result;
  for (int owner = 0; owner < 2; ++owner) {
    const std::int64_t begin = owner == 0 ? 0 : (n + 1) / 2, end = owner == 0 ? (n + 1) / 2 : n;
    for (std::int64_t at = begin; at < end; at += std::int64_t{chunk_values}) {
      const auto count_here = static_cast<std::size_t>(std::min(std::int64_t{chunk_values}, end - at));
      const auto chunk = [&](int rank) {
        return std::span(of[rank]).subspan(static_cast<std::size_t>(at), count_here);
      };
      std::vector<float> sum = rounded(chunk(1 - owner));
      for (std::size_t i = 0; i < count_here; ++i) sum[i] += chunk(owner)[i];
      const std::vector<float> sent = rounded(sum);
      result.insert(result.end(), sent.begin(), sent.end());
    }
  }
  return result;
}

/// Parts of several segments, the last one short and on one rank one segment more: how they travel changes no bit.
TEST(Segments, have_the_bits_that_the_codec_defines) {
  const std::int64_t segment = 8 * std::int64_t{chunk_values};
  for (const char* text : {"int8", "bf16", "int4"}) {
    for (const std::int64_t n : {2 * segment + 1, 5 * segment - 5, 34 * segment + 3}) {
      if (n > 32 * segment && text != std::string("int8")) continue;  // segments of more than the least length
      std::vector<std::vector<float>> results(2);
      run_threads(2, [&](Context& context) {
        std::vector<float> values = values_of(context.rank(), n);
        context.world().all_reduce(values, medley::sum, {.compress = text});
        results[static_cast<std::size_t>(context.rank())] = values;
      });
      ASSERT_EQ(results[0], results[1]) << text << ", " << n;
      ASSERT_EQ(results[0], sum_by_definition(codec(parse_spec(text)), n)) << text << ", " << n;
    }
  }
}

TEST(Segments, are_within_the_bound_in_place) {
  const std::int64_t each = 2 * 8 * std::int64_t{chunk_values} + 7;
  run_threads(3, [&](Context& context) {
    Comm world = context.world();
    const int me = context.rank(), n = 3;
    const auto part = [&](std::vector<float>& whole, int of) {
      return std::span(whole).subspan(static_cast<std::size_t>(of * each), static_cast<std::size_t>(each));
    };
    const double error = largest_error(codec(parse_spec("int8"))) + 1e-5;
    const auto near = [&](std::span<const float> got, std::span<const float> exact, double allowed, const char* what) {
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], exact[i], allowed) << what << ", element " << i;
    };
    std::vector<std::vector<float>> of;
    for (int r = 0; r < n; ++r) of.push_back(values_of(r, each * n));
    const std::vector<float>& mine = of[static_cast<std::size_t>(me)];

    std::vector<float> values = mine;
    world.all_to_all(values, values, {.compress = "int8"});
    for (int r = 0; r < n; ++r) near(part(values, r), part(of[static_cast<std::size_t>(r)], me), error, "all_to_all");
    values = mine;
    world.all_gather(part(values, me), values, {.compress = "int8"});
    for (int r = 0; r < n; ++r) near(part(values, r), part(of[static_cast<std::size_t>(r)], r), error, "all_gather");
    std::vector<float> sum(static_cast<std::size_t>(each)), exact(sum.size());
    for (auto& whole : of) {
      for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += part(whole, me)[i];
    }
    world.reduce_scatter(mine, sum, medley::sum, {.compress = "int8"});
    near(sum, exact, 2 * error, "reduce_scatter");
    std::vector<float> gathered(me == 1 ? mine.size() : 0), scattered(sum.size());
    world.gather(part(values, me), gathered, 1, {.compress = "int8"});
    if (me == 1) near(gathered, values, error, "gather");
    world.scatter(mine, scattered, 2, {.compress = "int8"});
    near(scattered, part(of[2], me), error, "scatter");
    values = mine;
    std::vector<float> total(me == 1 ? mine.size() : 0);
    world.reduce(values, total, medley::sum, 1, {.compress = "int8"});
    for (std::size_t i = 0; i < total.size(); ++i)
      ASSERT_NEAR(total[i], of[0][i] + of[1][i] + of[2][i], 5 * error) << "reduce, element " << i;
  });
}

}  // namespace
}  // namespace medley::compress::test
