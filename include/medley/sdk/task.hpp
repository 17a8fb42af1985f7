// Operations as coroutines: written as blocking code, run as polled state machines.
// Backends and algorithms are built from these; nothing in a task may block.
#pragma once

#include <coroutine>
#include <exception>
#include <medley/backend.hpp>
#include <utility>

namespace medley {

/// A lazily started coroutine. `co_await until(condition)` suspends it until the condition holds; `co_await task` runs
/// another task to its end. poll() advances it and returns whether it has finished; it rethrows the task's exception.
class Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  /// What the innermost suspended coroutine waits for; one per chain of nested tasks.
  struct Wait {
    bool (*ready)(void*) = nullptr;
    void* condition = nullptr;
    std::coroutine_handle<> resume;
  };

  struct promise_type {
    Wait own_wait;
    Wait* wait = &own_wait;
    std::coroutine_handle<> caller;
    std::exception_ptr error;

    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct ToCaller {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle self) noexcept {
          auto caller = self.promise().caller;
          return caller ? caller : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return ToCaller{};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  Poll poll() {
    Wait& wait = handle_.promise().own_wait;
    if (wait.ready) {
      if (!wait.ready(wait.condition)) return Poll::waiting;
      wait.ready = nullptr;
      wait.resume.resume();
    } else {
      handle_.resume();
    }
    if (!handle_.done()) return Poll::moved;
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return Poll::complete;
  }
  explicit operator bool() const { return static_cast<bool>(handle_); }

  auto operator co_await() && {
    struct Nested {
      Handle callee;
      bool await_ready() { return false; }
      std::coroutine_handle<> await_suspend(Handle caller) {
        callee.promise().caller = caller;
        callee.promise().wait = caller.promise().wait;
        return callee;
      }
      void await_resume() {
        if (callee.promise().error) std::rethrow_exception(callee.promise().error);
      }
    };
    return Nested{handle_};
  }

 private:
  Handle handle_;
};

/// Suspends the task until `condition()` is true; the condition is polled, so it must be cheap and may throw.
template <typename Condition>
auto until(Condition condition) {
  struct Awaiter {
    Condition condition;
    bool await_ready() { return condition(); }
    void await_suspend(Task::Handle self) {
      *self.promise().wait = {[](void* c) { return (*static_cast<Condition*>(c))(); }, &condition, self};
    }
    void await_resume() {}
  };
  return Awaiter{std::move(condition)};
}

}  // namespace medley
