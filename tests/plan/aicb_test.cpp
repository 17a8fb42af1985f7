// Plans against the AICB lists beside the repository: every difference has a cause, and a wrong plan has some
// without.
#include "plan/aicb.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "model/read_layout.hpp"
#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

struct Case {
  const char *list, *model, *layout, *framework;
};
constexpr Case cases[] = {
    {"G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv", "h=5120,a=40,layers=40,vocab=32000,seq=2048",
     "dp=16,tp=8,zero=1", "megatron"},
    {"G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp.csv", "h=5120,a=40,layers=40,vocab=32000,seq=2048",
     "dp=16,tp=8,zero=1,sp=on", "megatron"},
    {"L7B-D1-C01_Llama7B_zero2_mbs1.csv", "llama-7b",
     "dp=128,zero=2,reduce_bucket_size=1e9,allgather_bucket_size=1e9", "deepspeed"},
    {"L7B-D1-C02_Llama7B_zero3_mbs1.csv", "llama-7b", "dp=128,zero=3,reduce_bucket_size=1e9", "deepspeed"},
};

std::filesystem::path lists() {
  const char* shared = std::getenv("MEDLEY_SHARED");
  return std::filesystem::path(shared ? shared : MEDLEY_SOURCE_DIR "/../shared") / "data/aicb";
}

Comparison compare(const Case& c, const std::string& layout_text) {
  const Model m = read_model(c.model);
  Layout l = read_layout(layout_text);
  check(l, m);
  const Framework f = *parse_framework(c.framework);
  const AicbList list = read_aicb(read_file((lists() / c.list).string()), c.list, 0);
  return compare_with_aicb(m, l, f, 0, make_schedule(m, l, f, 0), list);
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
