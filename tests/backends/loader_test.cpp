// The plugin loader: what it finds, what it reports about broken plugins, and that the rest keeps working. Runs with
// MEDLEY_BACKEND_PATH set to the broken backends and the plain one (CMakeLists.txt).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/plugin_folders.hpp"
#include "comm/backend_loader.hpp"
#include "harness/ranks.hpp"

namespace medley {
namespace {

using core::KnownBackends;

core::KnownBackend& named(const KnownBackends& all, std::string_view name) {
  for (const auto& known : all) {
    if (known->name() == name) return *known;
  }
  throw std::runtime_error("no backend " + std::string(name));
}

void expect_reason(const KnownBackends& all, std::string_view name, const std::string& part) {
  const std::string reason = named(all, name).unavailable();
  EXPECT_NE(reason.find(part), std::string::npos) << name << ": " << reason;
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
}

TEST(plugins, each_broken_one_is_listed_with_one_line_that_says_why) {
  const KnownBackends all = core::find_backends({BROKEN_BACKENDS});
  EXPECT_EQ(all.front()->name(), "shm");
  EXPECT_EQ(all.front()->unavailable(), "");
  expect_reason(all, "foreign", "was built for medley-backend-0 but this Medley has medley-backend-");
  expect_reason(all, "compiled", "was built with another library but this Medley with libstdc++");
  expect_reason(all, "resized", "was built with other headers of medley-backend-");
  expect_reason(all, "throwing", "the cable is unplugged");
  expect_reason(all, "lacking", "there is no such network here");
  expect_reason(all, "empty", "returns nothing");
  expect_reason(all, "needy", "libmedley_test_missing.so");
}

TEST(plugins, other_files_are_ignored_and_a_file_that_is_no_library_is_listed) {
  const auto folder = std::filesystem::temp_directory_path() / ("medley_plugins_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* file : {"readme.txt", "libother.so", "libmedley_backend_.so", "libmedley_backend_junk.so"}) {
    std::ofstream(folder / file) << "not a library";
  }
  const KnownBackends all = core::find_backends({folder, folder / "not there"});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]->name(), "junk");
  EXPECT_NE(all[1]->unavailable().find("cannot be loaded"), std::string::npos);
}

TEST(plugins, variants_of_a_name_are_one_backend_and_the_first_that_works_serves) {
  const auto folder = std::filesystem::temp_directory_path() / ("medley_variants_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "libmedley_backend_plain-a.so") << "not a library";
  std::filesystem::create_symlink(std::filesystem::path(PLAIN_BACKENDS) / "libmedley_backend_plain.so",
                                  folder / "libmedley_backend_plain-b.so");
  const KnownBackends all = core::find_backends({folder});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]->unavailable(), "");
  std::filesystem::remove_all(folder);
}

TEST(plugins, folders_of_the_path_come_before_the_one_beside_the_library_and_do_not_replace_it) {
  const auto folders = core::plugin_folders();
  ASSERT_EQ(folders.size(), 3u);  // the two that CMakeLists.txt sets, and the library's own
  EXPECT_EQ(folders[0], BROKEN_BACKENDS);
  EXPECT_EQ(folders[1], PLAIN_BACKENDS);
  EXPECT_EQ(folders[2].filename(), "medley");
}

TEST(plugins, a_context_without_names_uses_what_works_and_tells_about_the_rest) {
  test::run_threads(3, [](Context& context) {
    std::vector<std::string> available;
    for (const BackendInfo& info : context.backends()) {
      if (info.available) {
        available.push_back(info.name);
      } else {
        EXPECT_FALSE(info.reason.empty()) << info.name;
      }
    }
    for (const char* name : {"shm", "plain"})
      EXPECT_EQ(std::count(available.begin(), available.end(), name), 1) << name;
    std::vector<int> numbers(3, 1);
    context.world().all_reduce(numbers, sum);
    context.world().all_reduce(numbers, sum, {.backend = "plain"});
    EXPECT_EQ(numbers[2], 9);
    const auto refusal = [&](const char* backend) -> std::string {
      try {
        context.world().all_reduce(numbers, sum, {.backend = backend});
      } catch (const Error& error) {
        return error.what();
      }
      return "accepted";
    };
    const std::string lacking = refusal("lacking"), smoke = refusal("smoke");
    EXPECT_NE(lacking.find("not available here: there is no such network here; this comm has"), std::string::npos)
        << lacking;
    EXPECT_NE(smoke.find("\"smoke\" is not one of this context's; this comm has"), std::string::npos) << smoke;
  });
}

TEST(plugins, asking_for_one_that_fails_names_it_and_lists_what_there_is) {
  for (const char* name : {"failing", "lacking", "nonsense"}) {
    ContextOptions options;
    options.backends = {"shm", name};
    try {
      Context context(options);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      const std::string sentence = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::unavailable);
      for (const char* part : {name, "available: ", "shm", "plain"}) {
        EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
      }
    }
  }
}

TEST(plugins, ranks_that_ask_for_different_backends_are_told_so) {
  auto store = make_local_store();
  std::vector<std::string> sentences(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ContextOptions options = test::options_of(rank, 2, store);
      options.backends = {rank == 0 ? "shm" : "plain"};
      try {
        Context context(options);
      } catch (const Error& error) {
        sentences[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& sentence : sentences) {
    EXPECT_NE(sentence.find("rank 1 for [\"plain\"]"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace medley
