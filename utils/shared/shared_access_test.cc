#include "fraktor/utils/shared/shared_access.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

using shared_internal::MayLeaveTheLock;
static_assert(MayLeaveTheLock<void> && MayLeaveTheLock<int> && MayLeaveTheLock<std::string>);
static_assert(MayLeaveTheLock<std::vector<int>> && MayLeaveTheLock<std::unique_ptr<int>>);
static_assert(MayLeaveTheLock<std::array<int, 3>> && MayLeaveTheLock<std::optional<int>>);
static_assert(!MayLeaveTheLock<int&> && !MayLeaveTheLock<const std::string&> && !MayLeaveTheLock<int*>);
static_assert(!MayLeaveTheLock<std::string_view> && !MayLeaveTheLock<std::span<const int>>);
static_assert(!MayLeaveTheLock<std::reference_wrapper<int>>);

TEST(SharedAccess, ReadsAndWritesUnderTheLockAndReturnsTheResult) {
  SharedAccess<std::map<std::string, int>> counts;
  EXPECT_EQ(counts.WithWrite([](auto& map) { return ++map["a"]; }), 1);
  counts.WithWrite([](auto& map) { map["b"] = 5; });
  EXPECT_EQ(counts.WithRead([](const auto& map) { return map.at("a") + map.at("b"); }), 6);
}

TEST(SharedAccess, BuildsTheValueInPlace) {
  SharedAccess<std::vector<int>> numbers(3, 7);
  EXPECT_EQ(numbers.WithRead([](const std::vector<int>& v) { return v; }), std::vector<int>({7, 7, 7}));
  SharedAccess<std::unique_ptr<int>> box(std::make_unique<int>(4));
  EXPECT_EQ(*box.WithWrite([](std::unique_ptr<int>& b) { return std::move(b); }), 4);
}

TEST(SharedAccess, GivesReadersAConstValue) {
  SharedAccess<int> number(1);
  const SharedAccess<int>& constant = number;
  EXPECT_TRUE(constant.WithRead([](auto& value) { return std::is_const_v<std::remove_reference_t<decltype(value)>>; }));
}

TEST(SharedAccess, ReleasesTheLockWhenTheFunctionThrows) {
  SharedAccess<int> number(1);
  EXPECT_THROW(number.WithWrite([](int&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(number.WithRead([](const int&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(number.WithWrite([](int& value) { return ++value; }), 2);
}

TEST(SharedAccess, LetsReadersInTogether) {
  SharedAccess<int> number(1);
  // Each reader waits inside for the other one. With an exclusive lock the test would hang.
  std::atomic<int> inside{0};
  const auto meet = [&](const int&) {
    inside.fetch_add(1);
    while (inside.load() < 2) std::this_thread::yield();
  };
  std::thread other([&] { number.WithRead(meet); });
  number.WithRead(meet);
  other.join();
  EXPECT_EQ(inside.load(), 2);
}

TEST(SharedAccessStress, KeepsWritersApartFromEverybody) {
  struct Pair {
    int a = 0;
    int b = 0;
  };
  SharedAccess<Pair> pair;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) {
        pair.WithWrite([](Pair& p) {
          ++p.a;
          ++p.b;
        });
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) {
        if (!pair.WithRead([](const Pair& p) { return p.a == p.b; })) ++torn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(pair.WithRead([](const Pair& p) { return p.a; }), 10'000);
}

}  // namespace
}  // namespace fraktor
