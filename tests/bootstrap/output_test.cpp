#include "bootstrap/launch_output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include <medley/sdk/descriptor.hpp>

namespace medley {
namespace {

// The output when `text` arrives in chunks of `piece` bytes.
std::string carried(const std::string& text, std::size_t piece) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  std::string out;
  std::thread reader([&] {
    char bytes[4096];
    for (ssize_t got = 0; (got = read(from.fd(), bytes, sizeof bytes)) > 0;)
      out.append(bytes, static_cast<std::size_t>(got));
  });
  LineCarrier carrier("[3] ", to.fd());
  for (std::size_t i = 0; i < text.size(); i += piece) EXPECT_TRUE(carrier.feed(text.substr(i, piece)));
  EXPECT_TRUE(carrier.finish());
  to.reset();
  reader.join();
  return out;
}

TEST(LineCarrier, PrefixesEachLineHoweverItArrives) {
  for (std::size_t piece : {1, 2, 3, 7, 100}) {
    EXPECT_EQ(carried("one\n\ntwo\nthree", piece), "[3] one\n[3] \n[3] two\n[3] three\n") << piece;
    EXPECT_EQ(carried("10%\r50%\r100%\r\ndone\r", piece), "[3] 10%\r[3] 50%\r[3] 100%\r\n[3] done\r") << piece;
    EXPECT_EQ(carried("", piece), "");
  }
}

TEST(LineCarrier, KeepsLongLinesWhole) {
  const std::string line(3 << 20, 'x');
  EXPECT_TRUE(carried(line + "\n" + line, 65536) == "[3] " + line + "\n[3] " + line + "\n");
}

TEST(LineCarrier, CutsALineThatNeverEnds) {
  const std::string out = carried(std::string(40 << 20, 'x'), 1 << 20);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 3);
}

}  // namespace
}  // namespace medley
