// Plans against the AICB lists next to the repository: every difference has a cause, and a wrong plan has
// differences without one.
#include "plan/aicb.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "model/read_layout.hpp"
#include "model/text.hpp"
#include "plan/helpers.hpp"
#include "plan/volume.hpp"

namespace medley::plan {
namespace {

struct Case {
  const char *list, *model, *layout, *framework;
};
constexpr Case cases[] = {
    {"G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv", "h=5120,a=40,layers=40,vocab=32000,seq=2048", "dp=16,tp=8,zero=1",
     "megatron"},
    {"G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp.csv", "h=5120,a=40,layers=40,vocab=32000,seq=2048",
     "dp=16,tp=8,zero=1,sp=on", "megatron"},
    {"L7B-D1-C01_Llama7B_zero2_mbs1.csv", "llama-7b", "dp=128,zero=2,reduce_bucket_size=1e9,allgather_bucket_size=1e9",
     "deepspeed"},
    {"L7B-D1-C02_Llama7B_zero3_mbs1.csv", "llama-7b", "dp=128,zero=3,reduce_bucket_size=1e9", "deepspeed"},
};

std::filesystem::path lists() {
  const char* shared = std::getenv("MEDLEY_SHARED");
  return std::filesystem::path(shared ? shared : MEDLEY_SOURCE_DIR "/../shared") / "data/aicb";
}

std::string text_of_list(const Case& c) { return read_file((lists() / c.list).string()); }

Comparison compare(const Case& c, const Model& m, const std::string& layout_text, const std::string& text) {
  Layout l = read_layout(layout_text);
  check(l, m);
  const Framework f = *parse_framework(c.framework);
  return compare_with_aicb(m, l, f, 0, make_schedule(m, l, f, 0), read_aicb(text, c.list, 0));
}

Comparison compare(const Case& c, const std::string& layout_text) {
  return compare(c, read_model(c.model), layout_text, text_of_list(c));
}

std::optional<Comparison> compare_lines(const Case& c, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  try {
    return compare(c, read_model(c.model), c.layout, text);
  } catch (const Error&) {
    return std::nullopt;  // it cannot be read
  }
}

/// What the plan sends, without order.
std::map<std::tuple<Op, std::string_view, Count>, Count> sent(const Case& c, const std::string& layout_text) {
  const Model m = read_model(c.model);
  Layout l = read_layout(layout_text);
  check(l, m);
  std::map<std::tuple<Op, std::string_view, Count>, Count> out;
  for (const Row& r : rows_of(make_schedule(m, l, *parse_framework(c.framework), 0)))
    out[{r.op, r.group, r.bytes}] += r.count;
  return out;
}

/// A list that ends before its step does.
void damaged_end(const Case& c, std::vector<std::string> lines) {
  lines.pop_back();
  const auto result = compare_lines(c, lines);
  EXPECT_FALSE(result && result->explained()) << c.list << " without the end of its step";
}

}  // namespace

class Aicb : public testing::TestWithParam<Case> {};

TEST_P(Aicb, EveryDifferenceHasACause) {
  if (!std::filesystem::exists(lists())) GTEST_SKIP() << "no lists at " << lists() << " (set MEDLEY_SHARED)";
  const Comparison result = compare(GetParam(), GetParam().layout);
  for (const Difference& d : result.differ)
    EXPECT_FALSE(d.cause.empty()) << d.purpose << ": " << text_of(d.ours) << " against " << text_of(d.theirs);
  EXPECT_NE(std::find(result.agree.begin(), result.agree.end(), "gradients"), result.agree.end());
}

TEST_P(Aicb, AnotherLayoutIsNotExplained) {
  if (!std::filesystem::exists(lists())) GTEST_SKIP() << "no lists at " << lists() << " (set MEDLEY_SHARED)";
  EXPECT_FALSE(compare(GetParam(), std::string(GetParam().layout) + ",gbs=512").explained());
  std::string other = GetParam().layout;
  other.replace(other.find("dp=") + 3, 2, "64");
  EXPECT_FALSE(compare(GetParam(), other).explained());
}

TEST_P(Aicb, AWrongPlanIsNotExplained) {
  if (!std::filesystem::exists(lists())) GTEST_SKIP() << "no lists at " << lists() << " (set MEDLEY_SHARED)";
  const Case& c = GetParam();
  const Model right = read_model(c.model);
  const std::string layout = c.layout;
  Count other = 0;
  for (const char* wrong : {",grad_dtype=bf16", ",grad_dtype=f32", ",seq=1024", ",micro_batch=2", ",dtype=f32",
                            ",recompute=full", ",recompute=selective"}) {
    if (sent(c, layout + wrong) == sent(c, layout)) continue;  // the framework's own default, or no traffic
    ++other;
    EXPECT_FALSE(compare(c, right, layout + wrong, text_of_list(c)).explained()) << c.list << wrong;
  }
  EXPECT_GE(other, 2);
  Model grouped = right;
  grouped.kv_heads = 8;
  EXPECT_FALSE(compare(c, grouped, layout, text_of_list(c)).explained()) << c.list << " with 8 key-value heads";
  Model wider = right;
  wider.ffn += 128;
  EXPECT_FALSE(compare(c, wider, layout, text_of_list(c)).explained()) << c.list << " with a wider MLP";
  Model other_vocabulary = right;
  other_vocabulary.vocab += 1024;
  EXPECT_FALSE(compare(c, other_vocabulary, layout, text_of_list(c)).explained());
  Model deeper = right;
  deeper.layers += 2;
  EXPECT_FALSE(compare(c, deeper, layout, text_of_list(c)).explained());
}

// Each operation of the step is, one at a time, removed, repeated, resized, moved to another group or
// changed.
TEST_P(Aicb, ADamagedListIsNotExplained) {
  if (!std::filesystem::exists(lists())) GTEST_SKIP() << "no lists at " << lists() << " (set MEDLEY_SHARED)";
  const Case& c = GetParam();
  std::vector<std::string> lines = split(text_of_list(c), '\n');
  while (!lines.empty() && trimmed(lines.back()).empty()) lines.pop_back();
  const auto whole = compare_lines(c, lines);
  ASSERT_TRUE(whole && whole->explained());
  const auto setup_end = std::find_if(
      lines.begin(), lines.end(), [](const std::string& line) { return line.find("epoch_end") != std::string::npos; });
  const std::size_t first = static_cast<std::size_t>(setup_end - lines.begin()) + 1;
  ASSERT_LT(first, lines.size());
  std::set<std::string> seen;
  for (std::size_t i = first; i < lines.size(); ++i) {
    const auto cells = split(lines[i], ',');
    if (!seen.insert(lines[i]).second || cells[0].find("epoch_end") != std::string::npos)
      continue;                     // equal rows fail equally
    if (cells[3] == "0") continue;  // sends nothing
    const auto damaged = [&](const char* how, const std::vector<std::string>& instead) {
      std::vector<std::string> copy = lines;
      copy.erase(copy.begin() + static_cast<std::ptrdiff_t>(i));
      copy.insert(copy.begin() + static_cast<std::ptrdiff_t>(i), instead.begin(), instead.end());
      const auto result = compare_lines(c, copy);
      // A change that makes the list agree with the plan is no damage.
      const bool refused = !result || !result->explained() || result->agree.size() > whole->agree.size() ||
                           result->differ.size() < whole->differ.size();
      EXPECT_TRUE(refused) << c.list << ":" << i + 1 << " " << how << ": " << lines[i];
    };
    const auto with = [&](std::size_t column, const std::string& value) {
      auto copy = cells;
      copy[column] = value;
      std::string line;
      for (std::size_t k = 0; k < copy.size(); ++k) line += (k ? "," : "") + copy[k];
      return std::vector<std::string>{line};
    };
    damaged("left out", {});
    damaged("repeated", {lines[i], lines[i]});
    damaged("resized", with(3, std::to_string(std::stoll(cells[3]) + 2)));
    damaged("doubled", with(3, std::to_string(std::stoll(cells[3]) * 2)));
    damaged("emptied", with(3, "0"));
    damaged("in another group", with(1, "CommGroup.ep_group"));
    damaged("of another size of group", with(2, std::to_string(std::stoll(cells[2]) * 2)));
    damaged("without a size of group", with(2, ""));
    damaged("another operation",
            with(0, cells[0] == "CommType.all_gather" ? "CommType.reduce_scatter" : "CommType.all_gather"));
    damaged("in another place", with(4, "step.somewhere"));
  }
  damaged_end(c, lines);
}

INSTANTIATE_TEST_SUITE_P(Lists, Aicb, testing::ValuesIn(cases));

TEST(AicbReader, RefusesOtherFiles) {
  EXPECT_NE(refusal([] { read_aicb("a,b\n1,2\n", "x.csv", 0); }).find("x.csv:1"), std::string::npos);
  EXPECT_NE(refusal([] {
              read_aicb(
                  "comm_type,comm_group,comm_group_size,msg_size,stage\nCommType.epoch_end,None,None,0,"
                  "\nCommType.all_reduce,CommGroup.tp_group,8,many,step\n",
                  "x.csv", 0);
            }).find("x.csv:3"),
            std::string::npos);
  EXPECT_NE(refusal([] { read_aicb("", "x.csv", 0); }), "");
}

}  // namespace medley::plan
