// Runs processes as ranks that may be killed, stopped or disconnected, and collects how each of them ended. For failure
// tests; where all ranks must succeed, tests/harness/ranks.hpp is enough.
#pragma once

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>

#include "harness/ranks.hpp"

namespace medley::test {

/// How a rank ended.
struct Ending {
  int status = 0;                   ///< as from waitpid
  bool hung = false;                ///< it had to be killed
  std::optional<ErrorKind> kind{};  ///< of the Medley error that its body ended with
  std::vector<int> ranks{};         ///< that the error names
  std::string what{};
};

/// Makes process_vm_readv fail in this process, as a container's seccomp filter may, so that exchanges are streamed.
inline void forbid_direct_reads() {
  if (process_vm_readv(getpid(), nullptr, 0, nullptr, 0, 0) < 0 && errno == ENOSYS) return;  // qemu-user has neither
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(code), .filter = code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("seccomp");
    _exit(3);
  }
}

class Job {
 public:
  struct Options {
    std::chrono::nanoseconds deadline = std::chrono::seconds(60);
    /// For everything too large to be staged, also where the segment would be faster; or never
    bool direct_reads = true;
    std::function<void(int rank)> before_context{};  ///< in the rank's process
  };
  /// The body makes its context when it wants to, by calling its argument.
  using Start = std::function<Context()>;
  using RankBody = std::function<void(int rank, const Start& start)>;

  Job(int size, const RankBody& body) : Job(size, body, Options()) {}
  Job(int size, const RankBody& body, const Options& options) : records_(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(rank, size, body, options);
      }
      processes_.push_back(child);
    }
    store_.open();
  }
  ~Job() {
    for (pid_t process : processes_) {
      if (process > 0) kill(process, SIGKILL), waitpid(process, nullptr, 0);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  pid_t process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }

  /// Waits for one rank, at most `limit`; far above what anything here takes, so that only a hang reaches it.
  Ending wait(int rank, std::chrono::seconds limit = std::chrono::seconds(40)) {
    Ending ending;
    pid_t& process = processes_[static_cast<std::size_t>(rank)];
    const auto until = std::chrono::steady_clock::now() + limit;
    while (waitpid(process, &ending.status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        ending.hung = true;
        kill(process, SIGKILL);
        waitpid(process, &ending.status, 0);
        break;
      }
      usleep(1000);
    }
    process = 0;
    const Record& record = records_[rank];
    if (record.set) {
      ending.kind = static_cast<ErrorKind>(record.kind);
      ending.ranks.assign(record.ranks, record.ranks + record.count);
      ending.what = record.what;
    }
    return ending;
  }

 private:
  struct Record {
    int set, kind, count, ranks[8];
    char what[1024];
  };

  [[noreturn]] void run(int rank, int size, const RankBody& body, const Options& options) {
    int status = 0;
    try {
      if (options.direct_reads) {
        setenv("MEDLEY_SHM_DIRECT", "1", 1);
      } else {
        forbid_direct_reads();
      }
      if (options.before_context) options.before_context(rank);
      body(rank, [&] {
        ContextOptions place = options_of(rank, size, store_.connect(rank, size));
        place.deadline = options.deadline;
        return Context(place);
      });
      status = ::testing::Test::HasFailure() ? 1 : 0;
    } catch (const Error& error) {
      Record& record = records_[rank];
      record.kind = static_cast<int>(error.kind());
      for (int r : error.context().ranks) {
        if (record.count < 8) record.ranks[record.count++] = r;
      }
      std::snprintf(record.what, sizeof record.what, "%s", error.what());
      record.set = 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, error.what());
      status = 2;
    }
    std::fflush(nullptr);
    _exit(status);
  }

  Shared<Record> records_;
  ForkedStore store_;
  std::vector<pid_t> processes_;
};

/// The rank ended with a Medley error of this kind that names exactly these ranks.
inline void expect_error(const Ending& ending, ErrorKind kind, const std::vector<int>& ranks, int rank) {
  EXPECT_FALSE(ending.hung) << "rank " << rank << " hung";
  ASSERT_TRUE(ending.kind.has_value()) << "rank " << rank << " ended without an error, status " << ending.status;
  EXPECT_STREQ(name(*ending.kind), name(kind)) << "rank " << rank << ": " << ending.what;
  EXPECT_EQ(ending.ranks, ranks) << "rank " << rank << ": " << ending.what;
}

inline void expect_success(const Ending& ending, int rank) {
  EXPECT_FALSE(ending.hung) << "rank " << rank << " hung";
  EXPECT_FALSE(ending.kind.has_value()) << "rank " << rank << ": " << ending.what;
  EXPECT_EQ(ending.status, 0) << "rank " << rank;
}

}  // namespace medley::test
