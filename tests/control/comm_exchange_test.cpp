// Creating comms by an exchange of the control threads: no key stays in the store, and ranks that do not take part are
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A store that counts the keys it holds.
class CountedStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override { note(key), inner_->set(key, value); }
  std::string get(const std::string& key, Deadline deadline) override { return inner_->get(key, deadline); }
  std::optional<std::string> try_get(const std::string& key) override { return inner_->try_get(key); }
  std::int64_t add(const std::string& key, std::int64_t delta) override { return note(key), inner_->add(key, delta); }
  void erase(const std::string& key) override {
    inner_->erase(key);
    const std::lock_guard lock(mutex_);
    keys_.erase(key);
  }
  void erase_prefix(const std::string& prefix) override {
    inner_->erase_prefix(prefix);
    const std::lock_guard lock(mutex_);
    std::erase_if(keys_, [&](const std::string& key) { return key.starts_with(prefix); });
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return keys_.size();
  }

 private:
  void note(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }
  std::shared_ptr<Store> inner_ = make_local_store();
  std::mutex mutex_;
  std::set<std::string> keys_;
};

TEST(CommExchange, leaves_no_keys_in_the_store) {
  const auto store = std::make_shared<CountedStore>();
  test::run_threads(
      3,
      [&](Context& context) {
        Comm world = context.world();
        world.barrier();
        const std::size_t before = store->size();
        for (int i = 0; i < 50; ++i) {
          Comm part = world.split(world.rank() % 2, 0);
          Comm all = world.dup();
          const int members[] = {2, 0, 1};
          Comm named = context.make_comm("named " + std::to_string(i), members);
          all.barrier();
        }
        world.barrier();
        EXPECT_EQ(store->size(), before);
        world.barrier();
      },
      [&](ContextOptions& options) {
        options.store = store;
        options.backends = {"shm"};
      });
}

TEST(CommExchange, names_the_rank_that_does_not_take_part) {
  std::atomic<int> told = 0;
  test::run_threads(
      3,
      [&](Context& context) {
        Comm world = context.world();
        world.barrier();
        if (world.rank() != 1) {
          try {
            context.make_comm("for all", std::vector<int>{0, 1, 2}, {.deadline = 300ms});
            ADD_FAILURE() << "a comm was made without rank 1";
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::timeout);
            EXPECT_THAT(error.what(), HasSubstr("making comm for all: rank 1 did not take part within the deadline"));
            EXPECT_EQ(error.context().ranks, std::vector<int>{1});
          }
          ++told;
        }
        while (told < 2) std::this_thread::yield();  // a rank that has left would be named instead
      },
      [](ContextOptions& options) { options.backends = {"shm"}; });
}

TEST(CommExchange, runs_the_engine_meanwhile) {
  test::run_threads(
      2,
      [](Context& context) {
        Comm world = context.world();
        std::vector<float> large(4 << 20, static_cast<float>(world.rank()));
        const int members[] = {0, 1};
        if (world.rank() == 0) {
          Work sent = world.send(large, 1, {.async = true});
          context.make_comm("both", members);  // the other rank gets here once it has everything
          sent.wait();
        } else {
          world.recv(large, 0);
          EXPECT_EQ(large.back(), 0.0f);
          context.make_comm("both", members);
        }
      },
      [](ContextOptions& options) { options.backends = {"shm"}; });
}

}  // namespace
}  // namespace medley
