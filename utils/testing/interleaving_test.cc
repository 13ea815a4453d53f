#include "fraktor/utils/testing/interleaving.h"

#include <atomic>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(Interleaving, Smoke) {
  for (auto order : {std::memory_order_seq_cst, std::memory_order_relaxed}) {
    ModelResult r = CheckInterleavings({}, [&](Model& m) {
      auto& x = m.Make<ModelAtomic<int>>(0).Named("x");
      auto& y = m.Make<ModelAtomic<int>>(0).Named("y");
      auto& a = m.Make<int>(0);
      auto& b = m.Make<int>(0);
      m.Thread([&] {
        x.store(1, order);
        a = y.load(order);
      });
      m.Thread([&] {
        y.store(1, order);
        b = x.load(order);
      });
      m.After([&] { MODEL_ASSERT(a == 1 || b == 1); });
    });
    std::cout << r << "\n";
  }
  ModelResult r = CheckInterleavings({}, [&](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    auto& ready = m.Make<ModelAtomic<bool>>(false);
    m.Thread("writer", [&] {
      data = 42;
      ready.store(true, std::memory_order_release);
    });
    m.Thread("reader", [&] {
      while (!ready.load(std::memory_order_acquire)) ModelYield();
      MODEL_ASSERT(data == 42);
    });
  });
  std::cout << r << "\n";
}

}  // namespace
}  // namespace fraktor
