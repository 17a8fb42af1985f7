#include "plan/against.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

AgainstRequest request_for(const std::string& list) {
  AgainstRequest request;
  request.model = "pythia-70m";
  request.layout = "dp=2";
  request.framework = "megatron";
  request.list = list;
  return request;
}

TEST(Against, ADifferenceWithoutACauseIsReportedAsSuch) {
  const auto path = std::filesystem::path(testing::TempDir()) / "medley_against.csv";
  std::ofstream(path) << "comm_type,comm_group,comm_group_size,msg_size,stage\n"
                         "CommType.epoch_end,None,None,0,\n"
                         "CommType.all_reduce,CommGroup.dp_group,2,12345,step.finish_grad_sync\n"
                         "CommType.epoch_end,None,None,0,\n";
  const AgainstResult result = compare_with_list(request_for(path.string()));
  std::filesystem::remove(path);
  EXPECT_FALSE(result.comparison.explained());
  const auto json = to_json(result);
  EXPECT_EQ(json["list"], path.string());
  EXPECT_EQ(json["explained"], false);
  bool unexplained = false;
  for (const auto& difference : json["differences"]) unexplained |= difference["cause"].is_null();
  EXPECT_TRUE(unexplained);
}

TEST(Against, RefusesFrameworksThatAicbDoesNotMock) {
  AgainstRequest request = request_for("x.csv");
  request.framework = "ddp";
  EXPECT_NE(refusal([&] { compare_with_list(request); }).find("it is ddp"), std::string::npos);
}

}  // namespace
}  // namespace medley::plan
