#include "fraktor/cluster/grain/grain_gate.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/remote/association/remote_door.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

struct Knock {
  int64_t number = 0;
};
template <>
struct Codec<Knock> : FieldCodec<Knock, &Knock::number> {
  static constexpr std::string_view kManifest = "test.knock";
};

namespace {

// What comes while the gate is held goes to the router, and has a ticket there: what comes later does not overtake it.
TEST(GrainGate, HoldsBackWhatComesBehindACallThatCameWhileItWasHeld) {
  CodecSetup setup;
  setup.Add<Knock>();
  const std::shared_ptr<const CodecRegistry> codecs = setup.Build().value();
  GrainGate& gate = *GrainGate::Make("a:1").value();
  GrainGate& router = *GrainGate::Make("a:2").value();  // Any reference will do.
  const auto parts = std::make_shared<GrainRouterParts>();
  parts->codecs = codecs.get();
  gate.Open(router.ref(), parts);
  GrainCall call{.key = GrainKey("door", "front"), .message = MakeEnvelope<Knock>(ActorRef(), Knock{.number = 1})};
  call.codec = CodecOfCall(call, *codecs);
  std::string bytes;
  const CodecContext context;
  Encoder out(bytes, context);
  ASSERT_TRUE(Codec<GrainCall>::Encode(call, out).ok());
  const ActorPathParts from =
      ActorPathParts::Remote("other", PathAuthority::Create("pekko", "b.test", 2552).value()).value();
  std::optional<RemoteDoor::Delivery> delivery;
  {
    const GrainGate::Hold hold(gate);
    const uint32_t batch = gate.BeginBatch();
    delivery = gate.Enter(batch, {.from = from,
                                  .sender = ActorRef(),
                                  .version = Codec<GrainCall>::kVersion,
                                  .payload = bytes,
                                  .context = context});
    gate.EndBatch(batch);
  }
  ASSERT_TRUE(delivery.has_value());
  EXPECT_EQ(delivery->to, router.ref());
  ASSERT_TRUE(delivery->message->Is<GrainCall>());
  EXPECT_EQ(delivery->message->As<GrainCall>().message->As<Knock>().number, 1);
  EXPECT_TRUE(gate.IsAtRouter(call.key)) << "until the router has passed it on";
  delivery.reset();
  EXPECT_FALSE(gate.IsAtRouter(call.key));
}

// CLU-8: what a batch has brought is in the mailbox before whoever ends the grain goes on. In either phase.
TEST(GrainGate, AwaitsABatchThatHasBegun) {
  GrainGate& gate = *GrainGate::Make("a:1").value();
  for (int i = 0; i < 4; ++i) {
    const uint32_t batch = gate.BeginBatch();
    // Not atomic: the end of the batch releases it.
    bool is_delivered = false;
    std::atomic<bool> has_begun{false};  // Only a flag.
    std::thread router([&] {
      has_begun.store(true, std::memory_order_relaxed);
      gate.AwaitEntering();
      EXPECT_TRUE(is_delivered);
    });
    while (!has_begun.load(std::memory_order_relaxed)) std::this_thread::yield();
    // Those that come and go meanwhile do not count for it.
    for (int other = 0; other < 100; ++other) gate.EndBatch(gate.BeginBatch());
    is_delivered = true;
    gate.EndBatch(batch);
    router.join();
    if (i % 2 == 0) gate.AwaitEntering();
  }
}

// Batches look for a grain and deliver to the actor that they find; the router gives one up, waits, and ends it: nobody
// delivers to one that has ended. There is always a batch under way, and the router is not held up for ever.
TEST(GrainGate, LetsNobodyComeBehindTheEndOfAGrain) {
  constexpr int kLives = 1000;
  constexpr int kReaders = 3;
  GrainGate& gate = *GrainGate::Make("a:1").value();
  struct Placement {
    Mutex mutex;
    int life ABSL_GUARDED_BY(mutex) = 0;
  } placement;
  const auto current = [&placement] {
    MutexLock lock(placement.mutex);
    return placement.life;
  };
  // One for each life. Not atomic: ThreadSanitizer sees who comes too late, too.
  struct Actor {
    bool is_over = false;
  };
  std::vector<Actor> actors(kLives + 1);
  std::atomic<int> late{0};   // Only a count.
  std::atomic<int> ready{0};  // Only a count.
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      ready.fetch_add(1, std::memory_order_relaxed);
      for (int life = 0; life < kLives;) {
        const uint32_t batch = gate.BeginBatch();
        life = current();
        std::this_thread::yield();
        if (actors[life].is_over) late.fetch_add(1, std::memory_order_relaxed);
        gate.EndBatch(batch);
      }
    });
  }
  while (ready.load(std::memory_order_relaxed) < kReaders) std::this_thread::yield();
  for (int life = 0; life < kLives; ++life) {
    {
      MutexLock lock(placement.mutex);
      placement.life = life + 1;
    }
    gate.AwaitEntering();
    actors[life].is_over = true;
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(late.load(), 0);
}

}  // namespace
}  // namespace fraktor
