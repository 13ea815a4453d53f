#include "fraktor/utils/testing/fiber.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

struct PingPong {
  Fiber root;
  std::unique_ptr<Fiber> other;
  std::vector<std::string> said;

  void SwitchToOther() { SwitchFiber(root, *other); }
  void SwitchToRoot() { SwitchFiber(*other, root); }
};

TEST(Fiber, KeepsItsStackWhileOthersRun) {
  PingPong game;
  game.other = std::make_unique<Fiber>(
      64 * 1024,
      [](void* argument) {
        auto& g = *static_cast<PingPong*>(argument);
        for (int i = 0;; ++i) {
          const std::string local = "round " + std::to_string(i);
          g.SwitchToRoot();
          g.said.push_back(local);
        }
      },
      &game);
  for (int i = 0; i < 4; ++i) game.SwitchToOther();
  EXPECT_EQ(game.said, (std::vector<std::string>{"round 0", "round 1", "round 2"}));
  Fiber::Abandon(std::move(game.other));
}

TEST(Fiber, HandlesExceptionsOfItsOwnWhileOthersHandleTheirs) {
  PingPong game;
  game.other = std::make_unique<Fiber>(
      64 * 1024,
      [](void* argument) {
        auto& g = *static_cast<PingPong*>(argument);
        for (;;) {
          try {
            throw std::runtime_error("theirs");
          } catch (const std::exception&) {
            g.SwitchToRoot();
            try {
              throw;
            } catch (const std::exception& again) {
              g.said.push_back(again.what());
            }
          }
          g.SwitchToRoot();
        }
      },
      &game);
  try {
    throw std::runtime_error("ours");
  } catch (const std::exception&) {
    game.SwitchToOther();
    try {
      throw;
    } catch (const std::exception& again) {
      game.said.push_back(again.what());
    }
    game.SwitchToOther();
  }
  EXPECT_EQ(game.said, (std::vector<std::string>{"ours", "theirs"}));
}

TEST(Fiber, MayBeDestroyedWithoutEverHavingRun) {
  Fiber unused(
      64 * 1024, [](void*) {}, nullptr);
}

}  // namespace
}  // namespace fraktor
