// Recordings leave everything else alone: folders and files of others, and those of running jobs, stay as
// they are; only what finished jobs left is removed or replaced.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <utime.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <medley/medley.hpp>
#include <set>
#include <thread>

#include "harness/ranks.hpp"
#include "trace/trace.hpp"

namespace medley::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* job_name = "18af0c2d9e1f3a55-4242";

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void make_old(const fs::path& path, std::time_t seconds) {
  const std::time_t then = std::time(nullptr) - seconds;
  const utimbuf times{then, then};
  ASSERT_EQ(utime(path.c_str(), &times), 0);
  for (std::error_code none; const auto& entry : fs::directory_iterator(path, none))
    ASSERT_EQ(utime(entry.path().c_str(), &times), 0);
}
/// Last changed five days ago: older than the limit for the files of killed jobs.
void make_old(const fs::path& path) { make_old(path, 5 * 24 * 3600); }

/// A job of one rank with one operation.
void run_alone() {
  test::run_processes(1, [](Context& context) { context.world().barrier(); });
}

/// A process with a context, until told to end.
class LiveJob {
 public:
  LiveJob() : child_(fork()) {
    if (child_ == 0) {
      try {
        work();
        _exit(0);
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        _exit(1);
      }
    }
    while (state_[0].load() == 0 && waitpid(child_, nullptr, WNOHANG) == 0) usleep(1000);
  }
  int end() {
    int status = 0;
    state_[0].store(2);
    waitpid(child_, &status, 0);
    child_ = -1;
    return status;
  }
  void kill_it() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  ~LiveJob() {
    if (child_ > 0) kill_it();
  }

 private:
  void work() {
    Context context(test::options_of(0, 1, make_local_store()));
    std::vector<float> values(16, 1);
    while (state_[0].load() != 2) {
      context.world().all_reduce(values, sum);
      int begun = 0;
      state_[0].compare_exchange_strong(begun, 1);
      usleep(1000);
    }
  }
  test::Shared<std::atomic<int>> state_;  ///< 0: not started, 1: running, 2: must end
  pid_t child_;
};

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "medley-folder-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    unsetenv("MEDLEY_TRACE");
    unsetenv("MEDLEY_FLIGHT");
    fs::remove_all(folder_);
  }
  void fly() { setenv("MEDLEY_FLIGHT", folder_.c_str(), 1); }
  void trace() { setenv("MEDLEY_TRACE", folder_.c_str(), 1); }
  /// Makes what a killed job leaves in its flight recorder's folder, renamed and aged; returns its name
  /// there.
  fs::path leave_old_job(const std::string& name) {
    std::set<fs::path> before;
    for (const auto& entry : fs::directory_iterator(folder_)) before.insert(entry.path());
    LiveJob job;
    job.kill_it();
    const fs::path old = folder_ / name;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (before.contains(entry.path())) continue;
      fs::rename(entry.path(), old);
      make_old(old);
      return old;
    }
    return {};
  }
  /// Makes what this many killed jobs leave, the last of them a minute ago and each other one a minute before the next.
  /// Returns their folders, the newest first.
  std::vector<fs::path> leave_jobs(int count, std::uintmax_t bytes = 0) {
    const fs::path first = leave_old_job(job_name);
    std::vector<fs::path> jobs;
    for (int i = 1; i <= count; ++i) {
      jobs.push_back(folder_ / fmt::format("18af0c2d9e1f{:04x}-{}", i, 5000 - i));
      fs::copy(first, jobs.back());
      if (bytes > 0) fs::resize_file(jobs.back() / "rank-0000.trace", bytes);
      make_old(jobs.back(), 60 * i);
    }
    fs::remove_all(first);
    return jobs;
  }
  fs::path folder_;
};

TEST_F(Folder, an_old_job_of_the_flight_recorder_goes) {
  fly();
  const fs::path old = leave_old_job(job_name);
  ASSERT_TRUE(fs::exists(old / "rank-0000.trace"));
  run_alone();
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(Folder, a_job_that_began_long_ago_and_wrote_until_now_stays) {
  fly();
  const fs::path old = leave_old_job(job_name);
  ASSERT_EQ(utime((old / "rank-0000.trace").c_str(), nullptr), 0);
  run_alone();
  EXPECT_TRUE(fs::exists(old / "rank-0000.trace"));
}

TEST_F(Folder, of_more_than_a_hundred_ended_jobs_the_oldest_go_though_several_ranks_look_at_once) {
  fly();
  LiveJob job;
  for (const auto& entry : fs::directory_iterator(folder_)) make_old(entry.path(), 24 * 3600);
  const std::vector<fs::path> ended = leave_jobs(103);
  write(folder_ / "thesis" / "chapter1.tex", "years of work");
  make_old(folder_ / "thesis", 24 * 3600);
  test::run_processes(4, [](Context& context) { context.world().barrier(); });
  for (std::size_t i = 0; i < ended.size(); ++i) EXPECT_EQ(fs::exists(ended[i]), i < 100) << i;
  EXPECT_EQ(contents(folder_ / "thesis" / "chapter1.tex"), "years of work");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 102)
      << "100 ended jobs, a live one, a folder of others";
  EXPECT_EQ(job.end(), 0);
}

TEST_F(Folder, ended_jobs_larger_than_256_MiB_together_go_but_the_newest_stays) {
  fly();
  const std::vector<fs::path> ended = leave_jobs(3, std::uintmax_t{120} << 20);
  run_alone();
  EXPECT_TRUE(fs::exists(ended[0]) && fs::exists(ended[1]));
  EXPECT_FALSE(fs::exists(ended[2]));
  fs::resize_file(ended[0] / "rank-0000.trace", std::uintmax_t{300} << 20);
  make_old(ended[0], 30);
  run_alone();
  EXPECT_TRUE(fs::exists(ended[0]));
  EXPECT_FALSE(fs::exists(ended[1]));
}

TEST_F(Folder, old_folders_of_others_stay_in_the_flight_recorders_folder) {
  fly();
  write(folder_ / "thesis" / "chapter1.tex", "years of work");
  write(folder_ / job_name / "rank-0000.trace", "named as ours, and not ours");
  write(folder_ / "18af0c2d9e1f3a56-1" / "notes.txt", "in a folder named as a job's");
  fs::create_directory(folder_ / "18af0c2d9e1f3a59-1");  // empty: nothing shows that it is ours
  fs::create_directory_symlink(folder_ / "thesis", folder_ / "18af0c2d9e1f3a57-1");
  const fs::path with_notes = leave_old_job("18af0c2d9e1f3a58-1");
  write(with_notes / "notes.txt", "beside a recording of ours");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.is_symlink()) make_old(entry.path());
  }
  run_alone();
  EXPECT_EQ(contents(folder_ / "thesis" / "chapter1.tex"), "years of work");
  EXPECT_EQ(contents(folder_ / job_name / "rank-0000.trace"), "named as ours, and not ours");
  EXPECT_TRUE(fs::exists(folder_ / "18af0c2d9e1f3a56-1" / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "18af0c2d9e1f3a59-1"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "18af0c2d9e1f3a57-1"));
  EXPECT_TRUE(fs::exists(with_notes / "notes.txt"));
  EXPECT_TRUE(fs::exists(with_notes / "rank-0000.trace"));
}

TEST_F(Folder, a_live_jobs_flight_recorder_stays_however_old_it_looks) {
  fly();
  LiveJob job;
  fs::path live;
  for (const auto& entry : fs::directory_iterator(folder_)) live = entry.path();
  ASSERT_FALSE(live.empty());
  make_old(live);
  run_alone();
  EXPECT_TRUE(fs::exists(live / "rank-0000.trace"));
  EXPECT_EQ(job.end(), 0);
  EXPECT_FALSE(fs::exists(live)) << "an orderly end removes it";
}

TEST_F(Folder, a_second_job_does_not_touch_the_trace_of_a_live_one_and_says_so) {
  trace();
  LiveJob job;
  const fs::path file = folder_ / "rank-0000.trace";
  const auto size = fs::file_size(file);
  auto store = make_local_store();
  std::vector<std::string> errors(2);
  std::vector<std::thread> ranks;
  for (int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      try {
        Context context(test::options_of(rank, 2, store));
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  for (const std::string& error : errors) EXPECT_NE(error.find("another job is writing"), std::string::npos) << error;
  EXPECT_EQ(fs::file_size(file), size);
  EXPECT_FALSE(fs::exists(folder_ / "rank-0001.trace"));
  EXPECT_EQ(job.end(), 0);
  EXPECT_EQ(open_trace(folder_.native()).ranks.size(), 1u);
}

TEST_F(Folder, a_job_replaces_the_whole_trace_of_a_finished_one) {
  trace();
  test::run_processes(3, [](Context& context) { context.world().barrier(); });
  EXPECT_EQ(open_trace(folder_.native()).ranks.size(), 3u);
  test::run_processes(2, [](Context& context) { context.world().barrier(); });
  const Trace second = open_trace(folder_.native());
  EXPECT_EQ(second.ranks.size(), 2u) << "the third rank is of the job before";
}

TEST_F(Folder, a_file_that_is_no_trace_is_not_overwritten) {
  trace();
  write(folder_ / "rank-0000.trace", "somebody's own");
  EXPECT_THROW(Context(test::options_of(0, 1, make_local_store())), Error);
  EXPECT_EQ(contents(folder_ / "rank-0000.trace"), "somebody's own");
}

TEST_F(Folder, contexts_of_one_process_write_beside_each_other) {
  trace();
  for (int i = 0; i < 2; ++i) {
    Context context(test::options_of(0, 1, make_local_store()));
    context.world().barrier();
  }
  EXPECT_TRUE(fs::exists(folder_ / "rank-0000.trace"));
  EXPECT_TRUE(fs::exists(folder_ / "rank-0000.2.trace"));
}

}  // namespace
}  // namespace medley::trace
