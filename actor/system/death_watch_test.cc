// Death watch, through the public API.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"

namespace fraktor {

using actor_internal::ActorEnded;
using actor_internal::ActorTree;
using actor_internal::CountChildren;
using actor_internal::EnvelopeList;
using actor_internal::UnwatchActor;
using actor_internal::WatchActor;
using system_internal::Act;
using system_internal::Fail;
using system_internal::Hooks;
using system_internal::Lines;
using system_internal::SystemTest;

namespace {

struct Gone {
  int number;
  friend bool operator==(const Gone&, const Gone&) = default;
};
// A message without operator==.
struct Lost {
  int number;
};

class DeathWatch : public SystemTest {
 protected:
  // A watcher that notes each Terminated: "w heard of a".
  ActorRef SpawnWatcher(const std::string& name) {
    return Spawn(name, {.terminated =
                            [this, name](ActorContext& context, const Terminated& ended) {
                              EXPECT_TRUE(ended.existence_confirmed);
                              EXPECT_FALSE(ended.address_terminated);
                              EXPECT_EQ(context.sender(), ended.actor);
                              EXPECT_EQ(ended.path, "pekko://test/user/" + NameOf(ended.actor));
                              heard_.push_back(name + " heard of " + NameOf(ended.actor));
                              return absl::OkStatus();
                            },
                        .other =
                            [this, name](ActorContext&, Envelope& message) {
                              if (const auto* gone = message.TryAs<Gone>()) {
                                heard_.push_back(name + " got " + std::to_string(gone->number));
                              }
                              return absl::OkStatus();
                            }});
  }
  void Watch(ActorRef watcher, ActorRef actor) {
    Let(watcher, [actor](ActorContext& context) { return context.Watch(actor); });
  }
  std::string NameOf(ActorRef actor) {
    for (const auto& [ref, name] : names_) {
      if (ref == actor) return name;
    }
    return "?";
  }
  ActorRef SpawnNamed(const std::string& name, Hooks hooks = {}, const PropsOptions& options = {}) {
    const ActorRef actor = Spawn(name, std::move(hooks), options);
    names_.emplace_back(actor, name);
    return actor;
  }
  Lines Heard() { return std::exchange(heard_, {}); }

  Lines heard_;
  std::vector<std::pair<ActorRef, std::string>> names_;
};

// A44
TEST_F(DeathWatch, TellsEachWatcherOnceOfAnEndAndNothingOfARestart) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef one = SpawnWatcher("one");
  const ActorRef two = SpawnWatcher("two");
  const ActorRef three = SpawnWatcher("three");
  for (const ActorRef watcher : {one, two, three}) Watch(watcher, a);
  Watch(one, a);  // Again.
  Let(three, [a](ActorContext& context) {
    context.Unwatch(a);
    return absl::OkStatus();
  });
  Fail(a);
  EXPECT_EQ(Heard(), Lines());
  Stop(a);
  Lines heard = Heard();
  std::sort(heard.begin(), heard.end());
  EXPECT_EQ(heard, (Lines{"one heard of a", "two heard of a"}));
}

// A45: every local reference is that of an actor that exists or has existed.
TEST_F(DeathWatch, TellsAtOnceOfAnActorThatHasEnded) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef watcher = SpawnWatcher("w");
  Stop(a);
  Watch(watcher, a);
  EXPECT_EQ(Heard(), (Lines{"w heard of a"}));
  // At each watch.
  Watch(watcher, a);
  EXPECT_EQ(Heard(), (Lines{"w heard of a"}));
  absl::Status no_one;
  Let(watcher, [&](ActorContext& context) {
    no_one = context.Watch(ActorRef());
    return absl::OkStatus();
  });
  EXPECT_EQ(no_one.code(), absl::StatusCode::kInvalidArgument);
}

// A45, A58
TEST_F(DeathWatch, TellsWhoWatchesAnActorInItsLastMoment) {
  const ActorRef watcher = SpawnWatcher("w");
  for (const bool limited : {false, true}) {
    const std::string name = limited ? "limited" : "free";
    PropsOptions options;
    if (limited) options.mailbox.capacity = 10;
    // The message that another thread sends too late.
    const ActorRef a = SpawnNamed(name,
                                  {.post_stop =
                                       [&](ActorContext& context) {
                                         TellSystem(context.self(), MakeEnvelope<UnwatchActor>(ActorRef(), watcher));
                                         TellSystem(context.self(), MakeEnvelope<WatchActor>(ActorRef(), watcher));
                                       }},
                                  options);
    Watch(watcher, a);
    // The actor forgets its watcher, which goes on waiting.
    TellSystem(a, MakeEnvelope<UnwatchActor>(ActorRef(), watcher));
    Settle();
    Stop(a);
    EXPECT_EQ(Heard(), (Lines{"w heard of " + name}));
  }
}

// A47
TEST_F(DeathWatch, IgnoresEndsOfActorsThatAreNotWatched) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef watcher = SpawnWatcher("w");
  Tell(watcher, Terminated{.actor = a});
  TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), a, true, false));
  Settle();
  EXPECT_EQ(Heard(), Lines());
  // A forged Terminated is ignored before the end. A real one is ignored after Unwatch.
  Watch(watcher, a);
  Tell(watcher, Terminated{.actor = a});
  Settle();
  EXPECT_EQ(Heard(), Lines());
  Tell(watcher, Act{[&](ActorContext& context) {
         ActorTree::Stop(a);
         context.Flush();
         return absl::OkStatus();
       }});
  Let(watcher, [a](ActorContext& context) {
    context.Unwatch(a);
    return absl::OkStatus();
  });
  EXPECT_FALSE(IsAlive(a));
  EXPECT_EQ(Heard(), Lines());
}

// A48
TEST_F(DeathWatch, EndsAWatcherThatDoesNotHandleTheEndOfWhatItWatches) {
  bool pact = false;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext&, const Failure& failure) {
                                pact = failure.cause == FailureCause::kDeathPact;
                                return SupervisorStrategy::DecideByDefault(failure);
                              }});
  const ActorRef watcher = SpawnUnder(boss, "watcher");
  const ActorRef a = SpawnNamed("a");
  Watch(watcher, a);
  Stop(a);
  EXPECT_TRUE(pact);
  EXPECT_FALSE(IsAlive(watcher));
  EXPECT_EQ(Logged().back(),
            "E pekko://test/user/boss/watcher: stopped after: pekko://test/user/boss/watcher watches "
            "pekko://test/user/a, which has ended, and does not handle Terminated");
}

// A49
TEST_F(DeathWatch, BringsAMessageOfTheWatchersOwnWhichCanBePutAside) {
  const ActorRef a = SpawnNamed("a");
  EnvelopeList aside;
  int came = 0;
  ActorRef sender;
  const ActorRef watcher = Spawn("w", {.other = [&](ActorContext& context, Envelope& message) {
                                   EXPECT_EQ(message.As<Gone>().number, 7);
                                   sender = context.sender();
                                   if (++came == 1) aside.PushBack(context.Stash().release());
                                   return absl::OkStatus();
                                 }});
  Let(watcher, [a](ActorContext& context) { return context.WatchWith(a, Gone{7}); });
  Stop(a);
  EXPECT_EQ(came, 1);
  EXPECT_EQ(sender, watcher);
  Let(watcher, [&](ActorContext& context) {
    context.Unstash(std::exchange(aside, {}));
    return absl::OkStatus();
  });
  EXPECT_EQ(came, 2);
}

TEST_F(DeathWatch, UnderstandsAMessageOfTheRuntimeInsteadOfTerminated) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef watcher = Spawn("w");
  Let(watcher, [a](ActorContext& context) { return context.WatchWith(a, PoisonPill{}); });
  Stop(a);
  EXPECT_FALSE(IsAlive(watcher));
}

// A50
TEST_F(DeathWatch, RefusesToWatchForTwoThings) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef b = SpawnNamed("b");
  const ActorRef watcher = SpawnWatcher("w");
  Let(watcher, [&](ActorContext& context) {
    EXPECT_TRUE(context.WatchWith(a, Gone{1}).ok());
    EXPECT_TRUE(context.WatchWith(a, Gone{1}).ok());
    const std::string gone = "fraktor::(anonymous namespace)::Gone";
    EXPECT_EQ(context.WatchWith(a, Gone{2}).message(),
              "pekko://test/user/w watches pekko://test/user/a already, for another " + gone + "; unwatch it first");
    EXPECT_EQ(context.Watch(a).message(), "pekko://test/user/w watches pekko://test/user/a already, for a " + gone +
                                              " and not for a Terminated; unwatch it first");
    for (const absl::Status& refused : {context.WatchWith(a, Gone{2}), context.WatchWith(a, 1), context.Watch(a)}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
      EXPECT_NE(refused.message().find("pekko://test/user/a"), absl::string_view::npos) << refused;
    }
    EXPECT_TRUE(context.Watch(b).ok());
    EXPECT_TRUE(context.Watch(b).ok());
    EXPECT_EQ(context.WatchWith(b, Gone{1}).code(), absl::StatusCode::kFailedPrecondition);
    // Messages without operator== count as equal.
    context.Unwatch(b);
    EXPECT_TRUE(context.WatchWith(b, Lost{1}).ok());
    EXPECT_TRUE(context.WatchWith(b, Lost{2}).ok());
    context.Unwatch(b);
    return context.WatchWith(b, Gone{3});
  });
  Stop(a);
  Stop(b);
  EXPECT_EQ(Heard(), (Lines{"w got 1", "w got 3"}));
}

// A51
TEST_F(DeathWatch, DoesNothingForWhoWatchesItself) {
  const ActorRef watcher = SpawnWatcher("w");
  Watch(watcher, watcher);
  Stop(watcher);
  EXPECT_EQ(Heard(), Lines());
  EXPECT_EQ(system().dead_letters().total(), 0u);
}

// A53
TEST_F(DeathWatch, EndsInOrder) {
  const ActorRef parent = Spawn("parent");
  const ActorRef friendly = SpawnNamed("friend");
  ActorRef kid;
  bool parent_knew = false;
  bool unreachable = false;
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext& context, const Terminated&) {
                                   diary_.Add("watcher heard");
                                   parent_knew = CountChildren(*parent.slot()) == 0;
                                   unreachable = !context.system().Resolve("/user/parent/kid").ok() && !IsAlive(kid);
                                   return absl::OkStatus();
                                 }});
  kid = SpawnUnder(parent, "kid", {.post_stop = [&](ActorContext& context) {
                     // The actor still runs its last hook, but messages to it come too late.
                     EXPECT_TRUE(context.system().Resolve("/user/parent/kid").ok());
                     context.Tell(context.self(), 1);
                   }});
  Watch(watcher, kid);
  // The ended actor watches another one, which forgets it.
  Watch(kid, friendly);
  Told();
  Stop(kid);
  EXPECT_EQ(Told(), (Lines{"kid PostStop", "watcher heard"}));
  EXPECT_TRUE(parent_knew);
  EXPECT_TRUE(unreachable);
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kStopped), 1u);
  Stop(friendly);
}

// A54
TEST_F(DeathWatch, ForgetsOnlyItsChildrenInARestart) {
  const ActorRef a = SpawnNamed("a");
  const ActorRef watcher = SpawnWatcher("w");
  const ActorRef kid = SpawnUnder(watcher, "kid");
  Watch(watcher, a);
  Watch(watcher, kid);
  Fail(watcher);
  EXPECT_FALSE(IsAlive(kid));
  EXPECT_EQ(Heard(), Lines());
  Stop(a);
  EXPECT_EQ(Heard(), (Lines{"w heard of a"}));
}

TEST_F(DeathWatch, DoesNotOvertakeWhatWasSentBefore) {
  const ActorRef watcher = SpawnWatcher("w");
  const ActorRef a = SpawnNamed("a", {.post_stop = [&](ActorContext& context) { context.Tell(watcher, Gone{1}); }});
  Watch(watcher, a);
  Let(a, [&](ActorContext& context) {
    for (int i = 2; i < 5; ++i) context.Tell(watcher, Gone{i});
    context.Stop();
    return absl::OkStatus();
  });
  EXPECT_EQ(Heard(), (Lines{"w got 2", "w got 3", "w got 4", "w got 1", "w heard of a"}));
}

// Watches an actor from its start, and counts its Terminated messages.
class Onlooker final : public ActorInstance {
 public:
  Onlooker(ActorRef watched, int* heard) : watched_(watched), heard_(*heard) {}
  absl::Status PreStart(ActorContext& context) override { return context.Watch(watched_); }
  absl::Status Receive(ActorContext&, Envelope& message) override {
    if (message.Is<Terminated>()) ++heard_;
    return absl::OkStatus();
  }

 private:
  const ActorRef watched_;
  int& heard_;
};

// A watch, and the end of one, must cost the same however many there are: this ends in time only
// then.
TEST_F(DeathWatch, HasVeryManyWatchers) {
  constexpr int kWatchers = 200'000;
  int heard = 0;
  const ActorRef watched = SpawnNamed("watched");
  const ActorRef boss = Spawn("boss");
  const PropsPtr props = MakeProps<Onlooker>({}, watched, &heard);
  std::vector<ActorRef> onlookers;
  Let(boss, [&](ActorContext& context) {
    for (int i = 0; i < kWatchers; ++i) onlookers.push_back(context.Spawn(*props));
    return absl::OkStatus();
  });
  Let(boss, [&](ActorContext& context) {
    for (int i = 0; i < kWatchers; i += 2) context.Stop(onlookers[static_cast<size_t>(i)]);
    return absl::OkStatus();
  });
  Stop(watched);
  EXPECT_EQ(heard, kWatchers / 2);
}

// SCH-11: metrics count a Terminated when it enters the mailbox and when it leaves.
TEST_F(DeathWatch, KeepsTheDepthOfTheMailboxRight) {
  const ActorRef watcher = SpawnWatcher("w");
  for (const char* name : {"a", "b", "c"}) {
    const ActorRef actor = SpawnNamed(name);
    Watch(watcher, actor);
    Let(actor, [](ActorContext& context) {
      context.Stop();
      return absl::OkStatus();
    });
  }
  EXPECT_EQ(Heard().size(), 3u);
  const auto depth = [&] {
    double sum = 0;
    for (const Metric& metric : system_->hub().Snapshot(toolbox_->Now()).metrics) {
      if (metric.name == kMailboxDepth) sum += metric.value;
    }
    return sum;
  };
  EXPECT_EQ(depth(), 0) << "each Terminated has left";
  double depth_in_turn = 0;
  Let(watcher, [&](ActorContext& context) {
    for (int i = 0; i < 3; ++i) context.Tell(context.self(), Gone{i});
    context.Flush();
    depth_in_turn = depth();
    return absl::OkStatus();
  });
  // The message of this turn counts until its end.
  EXPECT_GE(depth_in_turn, 3);
}

}  // namespace
}  // namespace fraktor
