// The collector recognises every Medley file by its content, refuses corrupt ones with a sentence, and never crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "report/collect.hpp"
#include "report/files.hpp"
#include "report/page.hpp"

namespace medley::report {
namespace {

namespace fs = std::filesystem;

using test::samples;
using ::testing::HasSubstr;

class Collect : public ::testing::Test {
 protected:
  Json file(const std::string& name) const {
    const Json run = collect(folder);
    for (const Json& note : run["files"])
      if (note["file"] == name) return note;
    return nullptr;
  }
  test::Scratch scratch;
  const fs::path folder = scratch.path();
};

TEST_F(Collect, every_kind_of_file_is_used) {
  test::write_all(folder, 64);
  const Json run = collect(folder);
  for (const Json& note : run["files"]) EXPECT_EQ(note["status"], "used") << note;
  for (const char* list : {"info", "bench", "steps", "routes", "replays", "reconcile", "plans", "shapes", "gemms",
                           "lints", "searches", "traces"})
    EXPECT_EQ(run[list].size(), 1) << list;
  EXPECT_EQ(run["skipped"][0], "two hosts made of network namespaces: it needs root");
}

TEST_F(Collect, names_do_not_matter_and_folders_are_searched) {
  test::write(folder / "a/b/anything.txt", samples().at("bench.json"));
  EXPECT_EQ(collect(folder)["bench"][0]["file"], "a/b/anything.txt");
}

TEST_F(Collect, the_report_itself_is_left_out) {
  test::write(folder / "report.html", "<!doctype html>");
  EXPECT_TRUE(collect(folder, folder / "report.html")["files"].empty());
}

TEST_F(Collect, what_it_does_not_know_is_listed_with_a_reason) {
  test::write(folder / "notes.txt", "bought milk\n");
  test::write(folder / "other.json", R"({"milk": 1})");
  test::write(folder / "step.json", R"({"schema": "medley.schedule/1", "ranks": []})");
  test::write(folder / "empty", "");
  for (const char* name : {"notes.txt", "other.json", "step.json", "empty"}) {
    const Json note = file(name);
    EXPECT_EQ(note["status"], "not used") << name;
    EXPECT_NE(note["why"], "") << name;
  }
}

TEST_F(Collect, a_wrong_field_is_refused_with_its_path) {
  std::string text = samples().at("bench.json");
  text.replace(text.find("\"median_us\": 20"), 15, "\"median_us\": \"x\"");
  test::write(folder / "bench.json", text);
  const Json note = file("bench.json");
  EXPECT_EQ(note["status"], "refused");
  EXPECT_THAT(note["why"].get<std::string>(), HasSubstr("rows[1].median_us is not a number"));
}

/// Calls visit(pointer) for every value below `value`.
void for_each_value(const Json& value, const Json::json_pointer& at,
                    const std::function<void(const Json::json_pointer&)>& visit) {
  if (!at.empty()) visit(at);
  if (value.is_object())
    for (const auto& item : value.items()) for_each_value(item.value(), at / item.key(), visit);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) for_each_value(value[i], at / i, visit);
}

TEST_F(Collect, any_one_value_replaced_gives_a_page_or_a_refusal) {
  std::size_t used = 0, refused = 0;
  for (const auto& [name, text] : samples()) {
    const Json good = Json::parse(text);
    for_each_value(good, Json::json_pointer(), [&](const Json::json_pointer& place) {
      for (const Json& wrong :
           {Json(), Json(-1), Json(1e300), Json("</script>"), Json::array({1}), Json::object({{"a", 1}})}) {
        Json bad = good;
        bad[place] = wrong;
        test::write(folder / name, bad.dump());
        const Json report = make_report(folder, "", "");
        for (const Json& note : report["runs"][0]["files"]) ++(note["status"] == "refused" ? refused : used);
        ASSERT_EQ(Json::parse(escaped(report)), report);
      }
    });
    fs::remove(folder / name);
  }
  EXPECT_GT(refused, used);
  EXPECT_GT(used, 0u);
}

TEST_F(Collect, files_cut_off_anywhere_are_refused) {
  for (const auto& [name, text] : samples()) {
    for (std::size_t length = 1; length < text.size(); length += 97) {
      test::write(folder / name, std::string_view(text).substr(0, length));
      EXPECT_EQ(file(name)["status"], "refused") << name << " of " << length << " bytes";
    }
    fs::remove(folder / name);
  }
}

TEST_F(Collect, damaged_traces_are_refused_or_read_to_their_last_record) {
  test::write_trace(folder / "trace", 1, 32);
  const fs::path path = folder / "trace/rank-0000.trace";
  std::ifstream in(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t length = 0; length < good.size(); length += 61) {
    test::write(path, std::string_view(good).substr(0, length));
    const Json note = file("trace");
    EXPECT_TRUE(note["status"] == "used" || (note["status"] == "refused" && note["why"] != "")) << note;
  }
}

TEST_F(Collect, hostile_files_are_refused) {
  test::write(folder / "deep.json", std::string(1 << 20, '['));
  test::write(folder / "deep_field.json", R"({"gpu": "x", "allow": )" + std::string(100000, '[') +
                                              std::string(100000, ']') + R"(, "findings": []})");
  test::write(folder / "latin1.json", "{\"version\": \"\xe9\", \"operations\": [], \"backends\": []}");
  test::write(folder / "huge_number.json", R"({"version": "1", "operations": [], "backends": [], "cores": 1e999})");
  test::write(folder / "large.json", "{");
  fs::resize_file(folder / "large.json", std::uintmax_t{65} << 20);
  for (const char* name : {"deep.json", "deep_field.json", "latin1.json", "huge_number.json", "large.json"})
    EXPECT_EQ(file(name)["status"], "refused") << name;
}

TEST_F(Collect, pipes_and_links_to_folders_are_not_followed) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_directory_symlink(folder, folder / "loop");
  EXPECT_EQ(file("pipe")["status"], "not used");
  EXPECT_EQ(file("loop")["status"], "not used");
}

TEST_F(Collect, a_folder_that_is_not_there_is_an_error) { EXPECT_THROW(collect(folder / "absent"), std::exception); }

}  // namespace
}  // namespace medley::report
