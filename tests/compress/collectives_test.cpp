// Compressed operations of several ranks: every result is within the codec's bound of the exact one (and exact if the
// codec is lossless), all ranks get the same bits, and what cannot be compressed is refused with a sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "compress/rank_values.hpp"
#include "harness/ranks.hpp"

namespace medley::compress::test {
namespace {

using medley::test::run_threads;

std::vector<const Codec*> bounded_codecs() {
  std::vector<const Codec*> all = usable_codecs();
  std::erase_if(all, [](const Codec* codec) { return !codec->bound(DType::f32); });
  return all;
}

void expect_near(std::span<const float> result, std::span<const double> exact, double error, const std::string& what) {
  ASSERT_EQ(result.size(), exact.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    ASSERT_NEAR(result[i], exact[i], error + 1e-5) << what << ", element " << i;
}

std::vector<double> exact_sum(int ranks) {
  std::vector<double> sum(count);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> values = values_of(r);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
  }
  return sum;
}

class CompressedCollectives : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, CompressedCollectives, testing::Values(2, 3, 4),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

TEST_P(CompressedCollectives, all_reduce_is_within_the_bound_and_equal_on_all_ranks) {
  const int n = GetParam();
  const std::vector<double> exact = exact_sum(n);
  for (const Codec* codec : bounded_codecs()) {
    const std::string text = codec->spec().text();
    std::vector<std::vector<float>> results(static_cast<std::size_t>(n));
    run_threads(n, [&](Context& context) {
      std::vector<float> values = values_of(context.rank());
      context.world().all_reduce(values, medley::sum, {.compress = text});
      results[static_cast<std::size_t>(context.rank())] = values;
    });
    // The result's block has values up to 10 n, so its own encoding adds n times the error of one.
    expect_near(results[0], exact, (2 * n - 1) * largest_error(*codec), text);
    for (const auto& result : results) {
      ASSERT_EQ(result.size(), results[0].size());
      ASSERT_EQ(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)), 0) << text;
    }
  }
}

TEST_P(CompressedCollectives, every_other_operation_is_within_the_bound) {
  const int n = GetParam();
  for (const Codec* codec : bounded_codecs()) {
    const std::string text = codec->spec().text();
    const double error = largest_error(*codec);
    run_threads(n, [&](Context& context) {
      Comm world = context.world();
      const int me = context.rank();
      const Options options{.compress = text};
      const auto part = [](const std::vector<float>& whole, std::int64_t at, std::int64_t length) {
        return std::vector<double>(whole.begin() + at, whole.begin() + at + length);
      };
      const std::int64_t each = 20001;
      std::vector<float> mine = values_of(me, each * n);

      std::vector<float> sum(static_cast<std::size_t>(each));
      world.reduce_scatter(mine, sum, medley::sum, options);
      std::vector<double> exact(static_cast<std::size_t>(each));
      for (int r = 0; r < n; ++r) {
        const auto theirs = part(values_of(r, each * n), me * each, each);
        for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += theirs[i];
      }
      expect_near(sum, exact, (n - 1) * error, text + " reduce_scatter");

      std::vector<float> all(static_cast<std::size_t>(each * n));
      world.all_gather(std::span(mine).first(static_cast<std::size_t>(each)), all, options);
      for (int r = 0; r < n; ++r) {
        expect_near(std::span(all).subspan(static_cast<std::size_t>(r * each), static_cast<std::size_t>(each)),
                    part(values_of(r, each * n), 0, each), error, text + " all_gather");
      }
      world.all_to_all(mine, all, options);
      for (int r = 0; r < n; ++r) {
        expect_near(std::span(all).subspan(static_cast<std::size_t>(r * each), static_cast<std::size_t>(each)),
                    part(values_of(r, each * n), me * each, each), error, text + " all_to_all");
      }
      const int root = n - 1;
      std::vector<float> one = values_of(me, each);
      world.broadcast(one, root, options);
      expect_near(one, part(values_of(root, each), 0, each), error, text + " broadcast");

      std::vector<float> total(count);
      world.reduce(values_of(me), total, medley::sum, root, options);
      if (me == root) expect_near(total, exact_sum(n), (2 * n - 1) * error, text + " reduce");

      std::vector<float> gathered(me == root ? static_cast<std::size_t>(each * n) : 0);
      world.gather(std::span(mine).first(static_cast<std::size_t>(each)), gathered, root, options);
      if (me == root)
        expect_near(std::span(gathered).first(static_cast<std::size_t>(each)), part(values_of(0, each * n), 0, each),
                    error, text + " gather");
      std::vector<float> scattered(static_cast<std::size_t>(each));
      world.scatter(mine, scattered, root, options);
      expect_near(scattered, part(values_of(root, each * n), me * each, each), error, text + " scatter");

      // Rank r sends 1000 (r + 1) elements to everybody, and nothing to rank 0.
      std::vector<std::int64_t> out_counts(static_cast<std::size_t>(n), 1000 * (me + 1)),
          in_counts(static_cast<std::size_t>(n));
      out_counts[0] = 0;
      for (int r = 0; r < n; ++r) in_counts[static_cast<std::size_t>(r)] = me == 0 ? 0 : 1000 * (r + 1);
      std::vector<float> routed(static_cast<std::size_t>(me == 0 ? 0 : 500 * n * (n + 1)));
      world.all_to_allv(mine, {out_counts}, routed, {in_counts}, options);
      std::int64_t at = 0;
      for (int r = 0; me > 0 && r < n; at += 1000 * (r + 1), ++r) {
        expect_near(std::span(routed).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(1000 * (r + 1))),
                    part(values_of(r, each * n), (me - 1) * 1000 * (r + 1), 1000 * (r + 1)), error,
                    text + " all_to_allv");
      }

      std::vector<float> received(static_cast<std::size_t>(each) + 100, -1.0f);  // larger than the message
      auto sent = world.send(one, (me + 1) % n, {.async = true, .compress = text});
      EXPECT_EQ(world.recv(received, (me + n - 1) % n, options).source(), (me + n - 1) % n);
      sent.wait();
      EXPECT_EQ(received.back(), -1.0f);
      received.resize(static_cast<std::size_t>(each));
      expect_near(received, part(values_of(root, each), 0, each), 2 * error, text + " message");
    });
  }
}

TEST(CompressedCollectives, after_a_broadcast_the_root_has_what_the_others_have) {
  std::vector<std::vector<float>> results(3);
  run_threads(3, [&](Context& context) {
    std::vector<float> values = values_of(context.rank());
    context.world().broadcast(values, 1, {.compress = "int4"});
    results[static_cast<std::size_t>(context.rank())] = values;
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[2], results[1]);
  EXPECT_NE(results[1], values_of(1)) << "it was rounded";
}

TEST(CompressedCollectives, lossless_codecs_take_integers_and_maxima) {
  run_threads(3, [](Context& context) {
    std::vector<std::int32_t> values(30000, context.rank());
    context.world().all_reduce(values, medley::max, {.compress = "lz4"});
    EXPECT_EQ(values, std::vector<std::int32_t>(30000, 2));
    std::vector<double> wide(30000, context.rank() + 0.5);
    context.world().all_reduce(wide, medley::sum, {.compress = "zstd"});
    EXPECT_EQ(wide, std::vector<double>(30000, 4.5));
  });
}

TEST(CompressedCollectives, non_finite_input_is_non_finite_on_all_ranks) {
  for (const Codec* codec : usable_codecs()) {
    run_threads(2, [&](Context& context) {
      std::vector<float> values = values_of(context.rank());
      if (context.rank() == 1) values[17] = INFINITY, values[count - 1] = NAN;
      ErrorFeedback feedback;
      context.world().all_reduce(values, medley::sum,
                                 {.compress = codec->algorithm().substr(1), .feedback = &feedback});
      EXPECT_FALSE(std::isfinite(values[17])) << codec->spec().text();
      EXPECT_FALSE(std::isfinite(values[count - 1])) << codec->spec().text();
    });
  }
}

/// Without feedback top_k would never send most values. With it, the sum over many steps approaches the exact one.
TEST(ErrorFeedback, of_an_all_reduce_sends_later_what_was_lost) {
  for (const char* text : {"top_k:0.05", "int4", "int8"}) {
    run_threads(2, [&](Context& context) {
      ErrorFeedback feedback;
      std::vector<double> sum(count);
      constexpr int steps = 100;
      for (int step = 0; step < steps; ++step) {
        std::vector<float> values = values_of(context.rank());  // the same in every step
        context.world().all_reduce(values, medley::sum, {.compress = text, .feedback = &feedback});
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
      }
      const std::vector<double> exact = exact_sum(2);
      double lost = 0;
      for (std::size_t i = 0; i < sum.size(); ++i) lost = std::max(lost, std::abs(sum[i] / steps - exact[i]));
      EXPECT_LT(lost, text == std::string("int8") ? 0.01 : text == std::string("int4") ? 0.2 : 8) << text;
      EXPECT_EQ(feedback.count(), count);
    });
  }
}

TEST(ErrorFeedback, of_another_tensor_is_refused) {
  run_threads(2, [](Context& context) {
    ErrorFeedback feedback;
    std::vector<float> values(1000), others(2000);
    context.world().all_reduce(values, medley::sum, {.compress = "int8", .feedback = &feedback});
    EXPECT_THROW(context.world().all_reduce(others, medley::sum, {.compress = "int8", .feedback = &feedback}), Error);
    feedback.reset();
    context.world().all_reduce(others, medley::sum, {.compress = "int8", .feedback = &feedback});
  });
}

TEST(CompressedCalls, that_make_no_sense_are_refused_with_a_sentence) {
  run_threads(2, [](Context& context) {
    Comm world = context.world();
    std::vector<std::int32_t> integers(10);
    std::vector<float> values(10);
    const auto refusal = [&](auto&& call) -> std::string {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid);
        return error.what();
      }
      return "not refused";
    };
    const auto has = [](const std::string& text, const char* part) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    has(refusal([&] { world.all_reduce(integers, medley::sum, {.compress = "int8"}); }),
        "not i32; lz4 and zstd take every type");
    has(refusal([&] { world.all_reduce(values, medley::sum, {.compress = "int9"}); }), "there is no codec");
    has(refusal([&] { world.all_reduce(values, medley::sum, {.compress = "top_k:0.1"}); }), "error feedback");
    has(refusal([&] { world.all_reduce(values, medley::sum, {.algorithm = "ring", .compress = "int8"}); }),
        "takes no algorithm");
    has(refusal([&] { world.barrier({.compress = "int8"}); }), "barrier");
    world.barrier();  // the comm still works
  });
}

TEST(CompressionRules, apply_where_they_can_and_no_call_needs_to_know) {
  const auto rules = [](ContextOptions& options) { options.rules = "*:1K-=shm+int4; *=shm"; };
  run_threads(
      2,
      [](Context& context) {
        Comm world = context.world();
        std::vector<float> rounded = values_of(context.rank()), exact = rounded, small(10, 0.123f);
        world.all_reduce(rounded, medley::sum);
        world.all_reduce(exact, medley::sum, {.compress = "none"});
        EXPECT_NE(rounded, exact) << "the rule compresses";
        world.all_reduce(small, medley::sum);
        EXPECT_EQ(small[0], 0.123f + 0.123f) << "below 1K it does not";
        std::vector<std::int32_t> integers(1000, 3);
        world.all_reduce(integers, medley::sum);
        EXPECT_EQ(integers[999], 6) << "int4 does not take integers: they travel as they are";
        world.barrier();
        std::vector<float> message(1000, 0.3f), received(1000);
        if (context.rank() == 0) world.send(message, 1);
        if (context.rank() == 1) {
          world.recv(received, 0);
          EXPECT_EQ(received, message) << "messages only by a rule for them";
        }
      },
      rules);
}

TEST(CompressionRules, are_written_and_read_alike) {
  const std::string text =
      "all_reduce:1048576-=mpi+int8;all_gather=auto+int8,bf16;broadcast=shm+mpi+zfp_rate:8;*=auto+error:0.01";
  EXPECT_EQ(Rules::parse(text).text(), text);
  EXPECT_EQ(Rules::parse("all_reduce=mpi+int8").list()[0].choice.backend, "mpi");
  EXPECT_THROW(Rules::parse("all_reduce=mpi+int8/ring"), Error);
  EXPECT_THROW(Rules::parse("all_reduce=auto+int9"), Error);
  EXPECT_THROW(Rules::parse("all_reduce=mpi+top_k:7"), Error);
}

/// Both codecs make frames of the same length: only the frame's header shows the difference.
TEST(DamagedData, and_other_codecs_are_an_error_on_every_rank) {
  std::vector<std::string> errors(3);
  run_threads(3, [&](Context& context) {
    std::vector<float> values(5000, 1.0f);
    try {
      context.world().all_reduce(values, medley::sum, {.compress = context.rank() == 1 ? "int8" : "fp8_e4m3"});
      context.world().barrier();  // a rank that had what it needed learns it here
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(context.rank())] = error.what();
    }
  });
  for (const std::string& error : errors) EXPECT_FALSE(error.empty());
}

TEST(DamagedData, in_a_message_is_an_error_that_names_the_sender) {
  run_threads(2, [](Context& context) {
    std::vector<float> values(100, 1.0f);
    if (context.rank() == 0) return static_cast<void>(context.world().send(values, 1));  // not compressed
    try {
      std::vector<float> larger(400);
      context.world().recv(larger, 0, {.compress = "int8"});
      ADD_FAILURE() << "bytes that are no frame were decoded";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("from rank 0: the compressed data are corrupt"), std::string::npos)
          << error.what();
    }
  });
}

/// Whatever overlaps: compressed and plain collectives, on one lane, waited for in another order.
TEST(CompressedCollectives, overlap_with_others) {
  run_threads(3, [](Context& context) {
    Comm world = context.world();
    std::vector<std::vector<float>> tensors(12, std::vector<float>(30000, static_cast<float>(context.rank())));
    std::vector<Work> works;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      works.push_back(world.all_reduce(tensors[i], medley::sum,
                                       {.async = true,
                                        .compress = i % 3 == 0   ? "int8"
                                                    : i % 3 == 1 ? "zstd"
                                                                 : "none"}));
    }
    for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
    for (const auto& tensor : tensors) EXPECT_NEAR(tensor[12345], 3, 0.05);
  });
}

TEST(Feedback, reaches_parts_that_lie_anywhere_in_the_buffer) {
  run_threads(2, [](Context& context) {
    std::vector<float> in(100'000, 1.01f), out(10);
    in[90'000] = in[99'000] = 9;  // so that int8 loses something of the others
    const std::vector<std::int64_t> counts{10, 10}, offsets{90'000, 99'000};
    ErrorFeedback feedback;
    context.world().reduce_scatterv(in, Parts{counts, offsets}, out, medley::sum,
                                    {.compress = "int8", .feedback = &feedback});
    ASSERT_EQ(feedback.count(), 99'010);
    EXPECT_NE(feedback.residual()[context.rank() == 0 ? 99'001 : 90'001], 0.0f);  // of what was sent to the other rank
    context.world().barrier();
  });
}

}  // namespace
}  // namespace medley::compress::test
