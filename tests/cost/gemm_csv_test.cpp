#include "cost/gemm_csv.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <sstream>

namespace medley::cost {
namespace {

std::vector<Gemm> read(const std::string& text) {
  std::istringstream in(text);
  return read_gemm_csv(in, "list.csv");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "accepted";
}

TEST(GemmCsv, ReadsColumnsInAnyOrderAndIgnoresOthers) {
  const auto gemms = read("# measured\nlayout,K,colour,m,n,batch\nNT,30,red,10,20,4\r\n\nTN,3,\"a, b\",1,2,\n");
  ASSERT_EQ(gemms.size(), 2u);
  EXPECT_EQ(gemms[0].m, 10);
  EXPECT_EQ(gemms[0].k, 30);
  EXPECT_EQ(gemms[0].batch, 4);
  EXPECT_EQ(gemms[0].layout, GemmLayout::NT);
  EXPECT_EQ(gemms[1].batch, 1);
  EXPECT_EQ(gemms[1].n, 2);
}

TEST(GemmCsv, ErrorsNameTheLineAndTheValue) {
  EXPECT_NE(refusal("m,n\n1,2\n").find("no column 'k'"), std::string::npos);
  EXPECT_NE(refusal("m,n,k\n1,2,3\n4,x7,6\n").find("line 3: n = 'x7'"), std::string::npos);
  EXPECT_NE(refusal("m,n,k\n1,2\n").find("line 2: k = ''"), std::string::npos);
  EXPECT_NE(refusal("m,n,k\n1,0,3\n").find("n = 0"), std::string::npos);
  EXPECT_NE(refusal("m,n,k\n99999999999999999999,1,3\n").find("99999999999999999999"), std::string::npos);
  EXPECT_NE(refusal("m,n,k,layout\n1,1,3,TT\n").find("'TT'"), std::string::npos);
  EXPECT_NE(refusal("").find("empty file"), std::string::npos);
  EXPECT_THROW(read_gemm_csv("/nonexistent/list.csv"), Error);
}

TEST(GemmCsv, RowsOfTheOutputDecideItsAlignment) {
  const Gemm logits{.m = 4096, .n = 50257, .k = 2048, .layout = GemmLayout::TN};  // X · Wᵀ
  const Gemm called = called_for_rows(logits);
  EXPECT_EQ(called.layout, GemmLayout::TN);
  EXPECT_EQ(called.m, 50257);
  EXPECT_EQ(called.n, 4096);
  EXPECT_EQ(called.alignment().c, 1);
  EXPECT_EQ(called.alignment().a, logits.alignment().a);
}

}  // namespace
}  // namespace medley::cost
