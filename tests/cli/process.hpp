// A program under test: starts it, sends it signals, and reads its output line by line. Used by tests that run the
// command.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include <medley/sdk/descriptor.hpp>

namespace medley::test {

/// Waits for the end of a process that need not be a child; false after 30 s.
class Watch {
 public:
  explicit Watch(pid_t pid) : descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  bool ended() const {
    if (!descriptor_) return true;
    pollfd entry{descriptor_.fd(), POLLIN, 0};
    return poll(&entry, 1, 30'000) > 0;
  }

 private:
  Descriptor descriptor_;
};

class Process {
 public:
  explicit Process(std::vector<std::string> words, const std::map<std::string, std::string>& environment = {},
                   const std::string& input = "/dev/null") {
    int out_pipe[2], err_pipe[2];
    if (pipe2(out_pipe, O_CLOEXEC) != 0 || pipe2(err_pipe, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> arguments;
      for (auto& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      dup2(open(input.c_str(), O_RDONLY), 0);
      dup2(out_pipe[1], 1);
      dup2(err_pipe[1], 2);
      execv(arguments[0], arguments.data());
      _exit(99);
    }
    close(out_pipe[1]);
    close(err_pipe[1]);
    out_ = Descriptor(out_pipe[0]);
    err_ = Descriptor(err_pipe[0]);
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  void close_output() { out_.reset(); }

  /// The next line of stdout, without its newline; fails the test when none comes within 30 s.
  std::string line() {
    std::size_t end = 0;
    while ((end = heard_.find('\n')) == heard_.npos) {
      pollfd entry{out_.fd(), POLLIN, 0};
      char bytes[4096];
      if (poll(&entry, 1, 30'000) <= 0) {
        ADD_FAILURE() << "no line came; stderr: " << rest_of(err_);
        return "";
      }
      const ssize_t got = read(out_.fd(), bytes, sizeof bytes);
      if (got <= 0) {
        ADD_FAILURE() << "the output ended; stderr: " << rest_of(err_);
        return "";
      }
      heard_.append(bytes, static_cast<std::size_t>(got));
    }
    std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    return line;
  }

  /// Whether this appears on stderr within 30 s.
  bool says(const std::string& text) {
    while (said_.find(text) == said_.npos) {
      pollfd entry{err_.fd(), POLLIN, 0};
      char bytes[4096];
      const ssize_t got = poll(&entry, 1, 30'000) > 0 ? read(err_.fd(), bytes, sizeof bytes) : 0;
      if (got <= 0) return false;
      said_.append(bytes, static_cast<std::size_t>(got));
    }
    return true;
  }

  /// Runs to the end; then out, err and status hold the results.
  void finish() {
    err = said_ + rest_of(err_, &out_);
    out = heard_;
    int word = 0;
    waitpid(pid_, &word, 0);
    pid_ = 0;
    status = WIFEXITED(word) ? WEXITSTATUS(word) : -WTERMSIG(word);
  }

  std::string out, err;
  int status = -1000;  ///< -signal when a signal ended it

 private:
  // Reads `wanted` to its end, and `other` into heard_ meanwhile, since a full pipe would block the program.
  std::string rest_of(Descriptor& wanted, Descriptor* other = nullptr) {
    std::string text;
    while (wanted || (other && *other)) {
      pollfd entries[2] = {{wanted.fd(), POLLIN, 0}, {other ? other->fd() : -1, POLLIN, 0}};
      if (poll(entries, 2, 60'000) <= 0) break;
      char bytes[65536];
      if (entries[0].revents) {
        const ssize_t got = read(wanted.fd(), bytes, sizeof bytes);
        got > 0 ? (void)text.append(bytes, static_cast<std::size_t>(got)) : wanted.reset();
      }
      if (entries[1].revents) {
        const ssize_t got = read(other->fd(), bytes, sizeof bytes);
        got > 0 ? (void)heard_.append(bytes, static_cast<std::size_t>(got)) : other->reset();
      }
    }
    return text;
  }

  pid_t pid_ = 0;
  Descriptor out_, err_;
  std::string heard_, said_;
};

}  // namespace medley::test
