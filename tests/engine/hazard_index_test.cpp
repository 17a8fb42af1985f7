// The hazard index against a plain list of all operations: what it reports is sufficient and never too much, and its
// cost does not grow with the number of operations.
#include "engine/hazard_index.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "engine/scheduling.hpp"

namespace medley::core {
namespace {

std::byte arena[8192];

struct Pending {
  OperationRef operation;
  std::set<std::size_t> after;  ///< numbers of the operations that must complete first
};

/// Random intervals, several per operation; completes them in any order that the reports allow.
class RandomHazards {
 public:
  /// The smaller the memory, the more conflicts.
  RandomHazards(unsigned seed, std::size_t bytes) : random_(seed), bytes_(bytes) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      add();
      while (random_() % 3 == 0 && complete_one()) {
      }
    }
    while (complete_one()) {
    }
    EXPECT_TRUE(index_.empty());
  }

 private:
  void add() {
    auto made = std::make_unique<Pending>();
    made->operation.reset(new Operation);
    Operation& operation = *made->operation;
    operation.order = all_.size() + 1;
    for (unsigned intervals = 1 + random_() % 4; intervals > 0; --intervals) {
      const std::size_t begin = random_() % (bytes_ - 1),
                        length = 1 + random_() % std::min<std::size_t>(40, bytes_ - begin);
      operation.accesses.push_back({arena + begin, arena + begin + length, random_() % 2 == 0});
    }
    if (random_() % 4 == 0) make_bulk(operation);
    if (!compare_conflicts(operation) && !operation.accesses.sorted()) return add_free(std::move(made));
    std::set<std::size_t> reported;
    index_.add(operation, [&](Operation& earlier) {
      const std::size_t number = earlier.order - 1;
      EXPECT_TRUE(reported.insert(number).second) << "reported twice";
      ASSERT_TRUE(all_[number]) << "it is complete";
      EXPECT_TRUE(conflict(earlier.accesses, operation.accesses)) << "a wait that nobody wrote";
    });
    made->after = reported;
    for (const std::size_t number : reported)
      made->after.insert(all_[number]->after.begin(), all_[number]->after.end());
    for (std::size_t number = 0; number < all_.size(); ++number) {
      if (!all_[number] || !conflict(all_[number]->operation->accesses, operation.accesses)) continue;
      EXPECT_TRUE(made->after.contains(number))
          << "operation " << operation.order << " does not wait for " << number + 1;
    }
    all_.push_back(std::move(made));
  }

  /// Like a fused message: many ranges, those of a kind in order and apart.
  void make_bulk(Operation& operation) {
    operation.accesses.clear();
    std::size_t reads = 0;
    for (const bool write : {false, true}) {
      for (std::size_t at = random_() % 20; at < bytes_ - 1;
           at += 1 + random_() % std::max<std::size_t>(bytes_ / 20, 2)) {
        const std::size_t end = std::min<std::size_t>(at + 1 + random_() % 8, bytes_);
        operation.accesses.push_back({arena + at, arena + end, write});
        at = end;
        if (!write) ++reads;
      }
    }
    operation.accesses.mark_sorted(reads);
  }
  /// Whether a pending operation conflicts with it, which the index must know of each access.
  bool compare_conflicts(const Operation& operation) {
    bool any = false;
    for (const Access& access : operation.accesses) {
      Accesses alone;
      alone.assign(access);
      const bool conflicts = std::any_of(all_.begin(), all_.end(), [&](const auto& other) {
        return other && conflict(other->operation->accesses, alone);
      });
      EXPECT_EQ(index_.conflicts(access), conflicts) << "of operation " << operation.order;
      any = any || conflicts;
    }
    return any;
  }
  void add_free(std::unique_ptr<Pending> made) {
    index_.add_without_conflict(*made->operation);
    all_.push_back(std::move(made));
  }

  /// An operation that waits for nothing.
  bool complete_one() {
    std::vector<std::size_t> free;
    for (std::size_t number = 0; number < all_.size(); ++number) {
      if (all_[number] && std::none_of(all_[number]->after.begin(), all_[number]->after.end(),
                                       [this](std::size_t other) { return all_[other] != nullptr; })) {
        free.push_back(number);
      }
    }
    if (free.empty()) return false;
    const std::size_t number = free[random_() % free.size()];
    index_.remove(*all_[number]->operation);
    all_[number].reset();
    return true;
  }

  std::mt19937 random_;
  std::size_t bytes_;
  HazardIndex index_;
  std::vector<std::unique_ptr<Pending>> all_;
};

TEST(HazardIndex, reports_what_must_come_before_and_nothing_else) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomHazards(seed, 256).run(120);
    RandomHazards(seed, sizeof arena).run(120);
  }
}

TEST(HazardIndex, reports_one_of_thousands_that_write_the_same_memory) {
  HazardIndex index;
  std::vector<OperationRef> operations;
  std::size_t reports = 0;
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    operations.emplace_back(new Operation);
    operations.back()->order = i;
    operations.back()->accesses.push_back({arena, arena + 64, false});
    operations.back()->accesses.push_back({arena, arena + 64, true});  // in place
    index.add(*operations.back(), [&](Operation&) { ++reports; });
  }
  EXPECT_EQ(reports, operations.size() - 1);
  EXPECT_EQ(index.size(), 1u);
  for (const OperationRef& operation : operations) index.remove(*operation);
  EXPECT_TRUE(index.empty());
}

TEST(HazardIndex, keeps_the_ranges_of_many_messages_apart) {
  constexpr std::size_t messages = 300, each = 8;  // more than the short list holds
  static_assert(messages * each <= sizeof arena);
  std::mt19937 random(7);
  for (const std::size_t count : {std::size_t{100}, messages}) {
    SCOPED_TRACE(count);
    HazardIndex index;
    std::vector<OperationRef> pending(count);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) {
      order[i] = i;
      pending[i].reset(new Operation);
      pending[i]->order = i + 1;
      pending[i]->accesses.assign({arena + i * each, arena + (i + 1) * each, true});
      index.add_without_conflict(*pending[i]);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t gone : order) {
      index.remove(*pending[gone]);
      pending[gone].reset();
      for (std::size_t i = 0; i < count; i += 7) {
        EXPECT_EQ(index.conflicts({arena + i * each + 1, arena + i * each + 2, false}), pending[i] != nullptr) << i;
      }
    }
    EXPECT_TRUE(index.empty());
  }
}

TEST(HazardIndex, removing_what_it_no_longer_has_leaves_the_others) {
  HazardIndex index;
  Operation failed, other;  // as in Scheduler::withdraw(): the list is built again without those that failed
  failed.accesses.assign({arena, arena + 8, true});
  index.add_without_conflict(failed);
  index.clear();
  other.order = 1;
  other.accesses.assign({arena + 8, arena + 16, true});
  index.add_without_conflict(other);
  index.remove(failed);
  EXPECT_TRUE(index.conflicts({arena + 8, arena + 9, false}));
}

TEST(HazardIndex, lets_thousands_read_the_same_memory) {
  HazardIndex index;
  std::vector<OperationRef> readers;
  const auto none = [](Operation&) { FAIL() << "two readers do not conflict"; };
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    readers.emplace_back(new Operation);
    readers.back()->order = i;
    readers.back()->accesses.push_back({arena, arena + 64, false});
    index.add(*readers.back(), none);
    if (i > 100) index.remove(*readers[i - 100]);  // some are always pending
  }
  Operation writer;
  writer.order = 30'000;
  writer.accesses.push_back({arena + 32, arena + 33, true});
  std::size_t reports = 0;
  index.add(writer, [&](Operation&) { ++reports; });
  EXPECT_EQ(reports, 100u);
}

}  // namespace
}  // namespace medley::core
