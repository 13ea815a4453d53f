#include "fraktor/utils/shared/shared.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

struct Counted : SharedObject {
  explicit Counted(int* death_count, int n = 0) : deaths(death_count), number(n) {}
  ~Counted() {
    ++*deaths;
    // The free of the memory must not race with this write. Volatile, since the compiler would
    // remove a dead write.
    static_cast<volatile int&>(number) = -1;
  }
  int* deaths;
  int number;
};

struct Animal : SharedObject {
  virtual ~Animal() = default;
  virtual int Legs() const = 0;
};
struct Named {
  virtual ~Named() = default;
  int padding[3] = {1, 2, 3};
};
struct Dog : Animal, Named {
  explicit Dog(int* death_count) : deaths(death_count) {}
  ~Dog() override { ++*deaths; }
  int Legs() const override { return 4; }
  int* deaths;
};

static_assert(sizeof(Shared<Counted>) == 8 && sizeof(WeakShared<Counted>) == 8);
static_assert(std::is_nothrow_move_constructible_v<Shared<Counted>> &&
              std::is_nothrow_copy_constructible_v<Shared<Counted>>);
static_assert(std::is_nothrow_move_assignable_v<Shared<Counted>> &&
              std::is_nothrow_move_assignable_v<WeakShared<Counted>>);
static_assert(std::is_convertible_v<Shared<Dog>, Shared<Animal>> &&
              std::is_convertible_v<Shared<Dog>, Shared<const Dog>>);
static_assert(std::is_convertible_v<Shared<Dog>, WeakShared<const Animal>>);
static_assert(!std::is_convertible_v<Shared<Animal>, Shared<Dog>> &&
              !std::is_convertible_v<Shared<const Dog>, Shared<Dog>>);
static_assert(!std::is_convertible_v<Counted*, Shared<Counted>>);

TEST(Shared, DestroysTheObjectWithItsLastOwner) {
  int deaths = 0;
  Shared<Counted> first = MakeShared<Counted>(&deaths, 7);
  Shared<Counted> second = first;
  EXPECT_EQ(first.OwnerCount(), 2u);
  EXPECT_EQ(second->number, 7);
  first.Reset();
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(deaths, 0);
  second = nullptr;
  EXPECT_EQ(deaths, 1);
}

TEST(Shared, MovesWithoutTouchingTheCount) {
  int deaths = 0;
  Shared<Counted> first = MakeShared<Counted>(&deaths);
  Shared<Counted> second = std::move(first);
  EXPECT_EQ(second.OwnerCount(), 1u);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): a moved-from Shared is null
  first = std::move(second);
  EXPECT_EQ(first.OwnerCount(), 1u);
}

TEST(Shared, SurvivesAssignmentToItself) {
  int deaths = 0;
  Shared<Counted> shared = MakeShared<Counted>(&deaths);
  Shared<Counted>& alias = shared;
  shared = alias;
  EXPECT_EQ(deaths, 0);
  EXPECT_EQ(shared.OwnerCount(), 1u);
}

TEST(Shared, ConvertsToBasesAndBack) {
  int deaths = 0;
  Shared<Dog> dog = MakeShared<Dog>(&deaths);
  Shared<Animal> animal = dog;
  Shared<const SharedObject> any = animal;
  EXPECT_EQ(animal->Legs(), 4);
  EXPECT_EQ(dog.OwnerCount(), 3u);
  Shared<Dog> back = StaticCast<Dog>(std::move(animal));
  EXPECT_EQ(back, dog);
  EXPECT_EQ(dog.OwnerCount(), 3u);
  dog.Reset();
  back.Reset();
  EXPECT_EQ(deaths, 0);
  any.Reset();
  EXPECT_EQ(deaths, 1);
}

TEST(Shared, IsFoundAgainFromAReference) {
  int deaths = 0;
  Shared<Counted> shared = MakeShared<Counted>(&deaths);
  Counted& object = *shared;
  Shared<Counted> again = ShareThis(object);
  EXPECT_EQ(again, shared);
  EXPECT_EQ(again.OwnerCount(), 2u);
}

TEST(Shared, CanBeAKey) {
  int deaths = 0;
  Shared<Counted> a = MakeShared<Counted>(&deaths);
  Shared<Counted> b = MakeShared<Counted>(&deaths);
  std::unordered_set<Shared<Counted>> ordered{a, b, a};
  absl::flat_hash_set<Shared<Counted>> flat{a, b, a};
  EXPECT_EQ(ordered.size(), 2u);
  EXPECT_EQ(flat.size(), 2u);
}

TEST(Shared, KeepsTheAlignmentOfTheObject) {
  struct alignas(128) Wide : SharedObject {
    char bytes[200] = {};
  };
  for (int i = 0; i < 10; ++i) {
    Shared<Wide> wide = MakeShared<Wide>();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(wide.get()) % 128, 0u);
  }
}

TEST(Shared, LeaksNothingWhenTheConstructorThrows) {
  struct Throwing : SharedObject {
    explicit Throwing(std::unique_ptr<int> v) : value(std::move(v)) { throw std::runtime_error("no"); }
    std::unique_ptr<int> value;
  };
  // AddressSanitizer's leak check is the second half of this test.
  EXPECT_THROW(MakeShared<Throwing>(std::make_unique<int>(1)), std::runtime_error);
}

TEST(WeakShared, LocksWhileThereIsAnOwner) {
  int deaths = 0;
  WeakShared<Counted> weak;
  EXPECT_EQ(weak.Lock(), nullptr);
  EXPECT_TRUE(weak.IsExpired());
  {
    Shared<Counted> shared = MakeShared<Counted>(&deaths, 3);
    weak = shared;
    EXPECT_FALSE(weak.IsExpired());
    Shared<Counted> locked = weak.Lock();
    shared.Reset();
    ASSERT_TRUE(locked);
    EXPECT_EQ(locked->number, 3);
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
  EXPECT_TRUE(weak.IsExpired());
  EXPECT_EQ(weak.Lock(), nullptr);
}

TEST(WeakShared, IsCopiedMovedAndConverted) {
  int deaths = 0;
  Shared<Dog> dog = MakeShared<Dog>(&deaths);
  WeakShared<Dog> weak = dog;
  WeakShared<Animal> base = weak;
  WeakShared<const Animal> constant = std::move(weak);
  EXPECT_EQ(weak.Lock(), nullptr);  // NOLINT(bugprone-use-after-move): a moved-from WeakShared is null
  EXPECT_EQ(base.Lock(), dog);
  EXPECT_EQ(constant.Lock()->Legs(), 4);
  WeakShared<Animal> copy = base;
  base.Reset();
  dog.Reset();
  EXPECT_EQ(deaths, 1);
  EXPECT_EQ(copy.Lock(), nullptr);
}

TEST(WeakShared, IsAlreadyExpiredInTheDestructor) {
  struct Watched : SharedObject {
    ~Watched() { *locked_in_destructor = self.Lock() != nullptr; }
    WeakShared<Watched> self;
    bool* locked_in_destructor = nullptr;
  };
  bool locked = true;
  Shared<Watched> shared = MakeShared<Watched>();
  shared->self = shared;
  shared->locked_in_destructor = &locked;
  shared.Reset();
  EXPECT_FALSE(locked);
}

struct Deferred : SharedObject {
  explicit Deferred(int* death_count) : deaths(death_count) {}
  ~Deferred() { ++*deaths; }
  static void DestroyShared(LastShared<Deferred> last) noexcept { waiting.emplace(std::move(last)); }
  int* deaths;
  static std::optional<LastShared<Deferred>> waiting;
};
std::optional<LastShared<Deferred>> Deferred::waiting;

TEST(Shared, LetsAClassDecideWhenItIsDestroyed) {
  int deaths = 0;
  Shared<Deferred> shared = MakeShared<Deferred>(&deaths);
  WeakShared<Deferred> weak = shared;
  shared.Reset();
  ASSERT_TRUE(Deferred::waiting.has_value());
  EXPECT_EQ(deaths, 0);
  EXPECT_EQ(weak.Lock(), nullptr);
  weak.Reset();
  EXPECT_EQ((*Deferred::waiting)->deaths, &deaths);  // the memory is still there
  Deferred::waiting.reset();
  EXPECT_EQ(deaths, 1);
}

TEST(SharedDeathTest, RefusesToShareWhatHasNoOwner) {
  struct Eager : SharedObject {
    Eager() { self = ShareThis(*this); }
    Shared<Eager> self;
  };
  EXPECT_DEATH(MakeShared<Eager>(), "the object has no owner");
}

TEST(SharedDeathTest, RefusesAClassWhoseBaseIsNotAtTheStart) {
  struct Displaced : Named, Animal {
    int Legs() const override { return 0; }
  };
  EXPECT_DEATH(MakeShared<Displaced>(), "make it the first base");
}

// One thread drops the last owner while others lock. Each lock gets a living object or null, and
// the object is destroyed once.
TEST(WeakSharedStress, LocksAgainstTheReleaseOfTheLastOwner) {
  constexpr int kRounds = 100'000;
  constexpr int kLockers = 2;
  struct Cell : SharedObject {
    explicit Cell(std::atomic<int>* death_count) : deaths(death_count) {}
    ~Cell() {
      value = -1;
      deaths->fetch_add(1, std::memory_order_relaxed);
    }
    int value = 42;  // plain: a lock that revived a dying object would be a race
    std::atomic<int>* deaths;
  };
  std::atomic<int> deaths{0};
  std::atomic<int> wrong{0};
  std::vector<Shared<Cell>> owners;
  std::vector<WeakShared<Cell>> weak;
  for (int i = 0; i < kRounds; ++i) {
    owners.push_back(MakeShared<Cell>(&deaths));
    weak.emplace_back(owners.back());
  }
  // The thread that is behind follows the thread that is ahead, so that they often meet at the same
  // cell.
  std::atomic<int> position{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      position.store(i, std::memory_order_relaxed);
      owners[i].Reset();
    }
  });
  for (int t = 0; t < kLockers; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; i = std::max(i + 1, position.load(std::memory_order_relaxed))) {
        if (Shared<Cell> alive = weak[i].Lock(); alive && alive->value != 42) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(deaths.load(), kRounds);
  for (const WeakShared<Cell>& one : weak) EXPECT_TRUE(one.IsExpired());
}

// The last weak pointer and the last owner go at the same time. The memory is freed once, after the
// destructor.
TEST(WeakSharedStress, FreesTheMemoryOnceWhenOwnerAndWeakPointerGoTogether) {
  constexpr int kRounds = 100'000;
  int deaths = 0;
  std::vector<Shared<Counted>> owners;
  std::vector<WeakShared<Counted>> weak;
  for (int i = 0; i < kRounds; ++i) {
    owners.push_back(MakeShared<Counted>(&deaths));
    weak.emplace_back(owners.back());
  }
  // The threads go in step, so that they meet at each object.
  std::atomic<int> position{0};
  std::thread dropper([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (position.load(std::memory_order_relaxed) < i) std::this_thread::yield();
      weak[i].Reset();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    position.store(i, std::memory_order_relaxed);
    owners[i].Reset();
  }
  dropper.join();
  EXPECT_EQ(deaths, kRounds);
}

TEST(SharedStress, CountsCopiesOfManyThreads) {
  int deaths = 0;
  Shared<Counted> shared = MakeShared<Counted>(&deaths, 5);
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&sum, shared] {
      for (int i = 0; i < 20'000; ++i) {
        Shared<Counted> copy = shared;
        if (copy->number == 5) sum.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(sum.load(), 80'000);
  EXPECT_EQ(shared.OwnerCount(), 1u);
  EXPECT_EQ(deaths, 0);
}

}  // namespace
}  // namespace fraktor
