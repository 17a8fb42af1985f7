#include "callback_threads.hpp"

#include <c10/util/Logging.h>
#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "gil.hpp"

namespace medley::torch {
namespace {

// Longer than most training steps, so that the next step reuses a thread.
constexpr std::chrono::seconds idle_time{2};
// The most callbacks that may block at the same time. Each takes a stack, of which little is touched.
constexpr int most_threads = 1024;

class CallbackThreads {
 public:
  void run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    queue_.push_back(std::move(task));
    if (ensure_free() || threads_ > 0) return;  // with threads, one of them will become free
    task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run_one(task);  // the system gives us no thread: running it here is better than never
  }

  bool wait_until_idle(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, at_most, [this] { return queue_.empty() && free_ == threads_; });
  }

 private:
  /// Ensures that a thread will look at the queue; false if none can be started. Called under the lock.
  bool ensure_free() {
    if (free_ > 0) {
      work_.notify_one();
      return true;
    }
    if (threads_ >= most_threads) return false;
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++threads_;
    ++free_;
    return true;
  }

  void serve() {
    pthread_setname_np(pthread_self(), "medley-callback");
    std::unique_lock lock(mutex_);
    while (work_.wait_for(lock, idle_time, [this] { return !queue_.empty(); })) {
      std::function<void()> task = std::move(queue_.front());
      queue_.pop_front();
      --free_;
      if (!queue_.empty()) ensure_free();  // this task may block
      lock.unlock();
      run_one(task);
      task = nullptr;
      lock.lock();
      ++free_;
      if (queue_.empty() && free_ == threads_) idle_.notify_all();
    }
    --free_;
    --threads_;
  }

  static void run_one(std::function<void()>& task) {
    if (python_is_ending()) {  // neither the callbacks nor the task's tensors may be touched any more
      static_cast<void>(new std::function<void()>(std::move(task)));
      return;
    }
    try {
      task();
    } catch (const std::exception& error) {
      LOG(ERROR) << "medley: the callback of a future failed: " << error.what();
    }  // nothing else: Python ends a thread of an interpreter that has gone by unwinding its stack
  }

  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<std::function<void()>> queue_;
  int threads_ = 0;
  int free_ = 0;  ///< the idle ones among them
};

/// Never destroyed: its threads may outlive every static object. A forked child, which has none of the
/// threads, makes a new one.
CallbackThreads* of_process = nullptr;

CallbackThreads& callback_threads() {
  static const bool made = [] {
    of_process = new CallbackThreads;
    pthread_atfork(nullptr, nullptr, [] { of_process = new CallbackThreads; });
    return true;
  }();
  static_cast<void>(made);
  return *of_process;
}

}  // namespace

void run_apart(std::function<void()> task) {
  callback_threads().run(std::move(task));
}

bool wait_for_callbacks(std::chrono::milliseconds at_most) {
  return callback_threads().wait_until_idle(at_most);
}

}  // namespace medley::torch
