// The races of a bounded mailbox, in every interleaving: a sender that finds no room while the
// receiver makes some, or while a message leaves unhandled, and a late sender while the slot goes
// to the next actor. The tests can fail: they do if a memory order is weaker or a step is left out.
//
// The word is the real one. The steps around it are those of MailboxLimits with BlockProducer:
// Admit and Hold, TakenOut and Readmit, Close and Configure. `Receive` is TakeLimited, and `Lose`
// is UncountLimited (limited_sending.cc).
//
// SCH-4
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/mailbox/internal/limit_word.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_cases.h"
#include "fraktor/utils/testing/model_lock.h"

namespace fraktor::actor_internal {
namespace {

using Word = BasicLimitWord<ModelAtomics>;

enum class Mutation {
  kNone,
  kNoSecondLook,       // Joins the line because there was no room before it took the mutex.
  kStopsWaitingFirst,  // Clears kWaiting before the messages of the line are pushed.
  kForgetsTheRest,     // Clears kWaiting although the line is not empty.
  kNoGeneration,       // A sender does not check the generation.
  kControlOvertakes,   // A control message overtakes one that waits.
  kLosesSilently,      // A message leaves unhandled, and no sender is let in.
};

// The capacity of the actor of a generation. It shows whose rules a thread has read.
uint64_t CapacityOf(uint32_t generation) { return generation; }
constexpr uint64_t kReserve = 1;

// Messages 5 to 8 are control messages.
constexpr uint64_t kFirstControl = 5;
bool IsControl(uint64_t message) { return message >= kFirstControl && message <= 8; }

// A list of messages is a number with one digit for each, the first message in front.
uint64_t CountOf(uint64_t digits) {
  uint64_t count = 0;
  for (; digits != 0; digits /= 10) ++count;
  return count;
}
uint64_t TakeFirst(uint64_t& digits) {
  uint64_t scale = 1;
  while (digits / scale >= 10) scale *= 10;
  const uint64_t first = digits / scale;
  digits %= scale;
  return first;
}

template <Mutation kMutation>
class Mailbox {
 public:
  // `left` messages are in the mailbox: the actor has sent them to itself, past any limit.
  Mailbox(uint32_t generation, int left) {
    word_.Open(generation, CapacityOf(generation), OverflowNeeds::kLine, kReserve);
    for (int i = 0; i < left; ++i) {
      word_.Add();
      Push(9);
    }
  }

  // `message` is 1 to 8.
  void Send(uint32_t generation, uint64_t message) {
    uint64_t word = word_.Look();
    while (IsFor(word, generation)) {
      MODEL_ASSERT(word_.capacity() >= CapacityOf(generation), "the rules of an earlier actor");
      if (!word_.HasRoom(word) && !(IsControl(message) && word_.HasControlRoom(word))) {
        Hold(generation, message);
        return;
      }
      if (word_.TryCount(word)) {
        MODEL_ASSERT(Word::IsFor(word, generation), "counted for another actor");
        Push(message);
        return;
      }
    }
    ended_.fetch_add(1, std::memory_order_relaxed);
  }

  // One message leaves, if there is any. One thread at a time calls it.
  bool Receive() {
    const uint64_t taken = taken_;
    if (CountOf(pushed_.load(std::memory_order_acquire)) == taken + lost_.load(std::memory_order_relaxed)) return false;
    taken_ = taken + 1;
    if (word_.TakenOut()) Readmit();
    return true;
  }
  // Another thread removes a message. There must be one.
  void Lose() {
    lost_.fetch_add(1, std::memory_order_relaxed);
    if (word_.TakenOut() && kMutation != Mutation::kLosesSilently) Readmit();
  }

  // The actor ends, and another takes its place.
  void Replace(uint32_t generation) {
    mutex_.Lock();
    word_.Close();
    ended_.fetch_add(CountOf(line_), std::memory_order_relaxed);
    line_ = 0;
    control_in_line_ = 0;
    mutex_.Unlock();
    mutex_.Lock();
    word_.Open(generation, CapacityOf(generation), OverflowNeeds::kLine, kReserve);
    mutex_.Unlock();
  }

  // Call the functions below when no other thread runs any more.

  void ExpectNobodyWaitsAtAHalfEmptyMailbox() {
    MODEL_ASSERT(line_ == 0 || word_.depth() > word_.capacity() / 2, "somebody waits although there is room");
  }
  // The receiver continues until its mailbox is empty.
  void ExpectAllArrive(uint64_t messages) {
    while (Receive()) {
    }
    MODEL_ASSERT(line_ == 0, "somebody waits at an empty mailbox");
    MODEL_ASSERT(word_.depth() == 0, "what was counted has not left");
    MODEL_ASSERT(word_.HasRoom(word_.Look()), "nobody waits, and still a sender would have to");
    MODEL_ASSERT(taken_ + lost_.load() + ended_.load() == messages, "a message was lost");
  }
  uint64_t pushed() const { return pushed_.load(); }
  bool HasPushed(uint64_t message) const {
    for (uint64_t digits = pushed_.load(); digits != 0; digits /= 10) {
      if (digits % 10 == message) return true;
    }
    return false;
  }

 private:
  static bool IsFor(uint64_t word, uint32_t generation) {
    return kMutation == Mutation::kNoGeneration ? Word::IsOpen(word) : Word::IsFor(word, generation);
  }

  void Push(uint64_t message) {
    uint64_t pushed = pushed_.load(std::memory_order_relaxed);
    while (!pushed_.compare_exchange_weak(pushed, pushed * 10 + message, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
    }
  }

  void Hold(uint32_t generation, uint64_t message) {
    mutex_.Lock();
    const uint64_t control_in_line = control_in_line_;
    const bool overtakes = IsControl(message) && (control_in_line == 0 || kMutation == Mutation::kControlOvertakes);
    Word::Room room = word_.CountOrWait(generation, true, overtakes);
    if (kMutation == Mutation::kNoSecondLook && room == Word::Room::kCounted) {
      word_.Subtract(1);
      room = Word::Room::kNone;
    }
    if (room == Word::Room::kNone) {
      line_ = line_ * 10 + message;
      if (IsControl(message)) control_in_line_ = control_in_line + 1;
    }
    mutex_.Unlock();
    if (room == Word::Room::kCounted) Push(message);
    if (room == Word::Room::kEnded) ended_.fetch_add(1, std::memory_order_relaxed);
  }

  void Readmit() {
    mutex_.Lock();
    uint64_t line = line_;
    uint64_t count = word_.CountWaiting(CountOf(line));
    if (kMutation == Mutation::kStopsWaitingFirst && count == CountOf(line)) word_.StopWaiting();
    uint64_t control_in_line = control_in_line_;
    for (; count > 0; --count) {
      const uint64_t message = TakeFirst(line);
      if (IsControl(message)) --control_in_line;
      Push(message);
    }
    control_in_line_ = control_in_line;
    line_ = line;
    if (line == 0 || kMutation == Mutation::kForgetsTheRest) word_.StopWaiting();
    mutex_.Unlock();
  }

  Word word_;
  ModelLock mutex_;
  ModelPlain<uint64_t> line_{0};             // Guarded by the mutex, like the next one.
  ModelPlain<uint64_t> control_in_line_{0};  // The number of control messages in line.
  // The inbox: all pushed messages, and the numbers of those that have left.
  ModelAtomic<uint64_t> pushed_{0};
  ModelPlain<uint64_t> taken_{0};
  ModelAtomic<uint64_t> lost_{0};
  ModelAtomic<uint64_t> ended_{0};
};

template <Mutation kMutation>
struct Cases {
  using Box = Mailbox<kMutation>;

  // The only message leaves while a sender finds no room.
  static void ASenderAtAFullMailbox(Model& m) {
    auto& box = m.Make<Box>(1u, 1);
    m.Thread("receiver", [&] { box.Receive(); });
    m.Thread("sender", [&] { box.Send(1, 1); });
    m.After([&] { box.ExpectAllArrive(2); });
  }

  static void TwoSendersAtAFullMailbox(Model& m) {
    auto& box = m.Make<Box>(1u, 1);
    m.Thread("receiver", [&] { box.Receive(); });
    m.Thread("first", [&] { box.Send(1, 1); });
    m.Thread("second", [&] { box.Send(1, 2); });
    m.After([&] { box.ExpectAllArrive(3); });
  }

  // A handler sends twice while its first message is let in.
  static void TwoMessagesOfOneSender(Model& m) {
    auto& box = m.Make<Box>(3u, 3);
    m.Thread("receiver", [&] {
      box.Receive();
      box.Receive();
    });
    m.Thread("sender", [&] {
      box.Send(3, 1);
      box.Send(3, 2);
    });
    m.After([&] {
      box.ExpectAllArrive(5);
      MODEL_ASSERT(box.pushed() == 99912, "a message has overtaken an earlier one of its sender");
    });
  }

  // A handler sends two control messages to a mailbox whose reserve is used up, while the receiver
  // takes messages.
  static void TwoControlMessagesOfOneSender(Model& m) {
    auto& box = m.Make<Box>(2u, 3);
    m.Thread("receiver", [&] {
      box.Receive();
      box.Receive();
    });
    m.Thread("sender", [&] {
      box.Send(2, 5);
      box.Send(2, 6);
    });
    m.After([&] {
      box.ExpectAllArrive(5);
      MODEL_ASSERT(box.pushed() == 99956, "a control message has overtaken an earlier one of its sender");
    });
  }

  // A control message finds room in the reserve while another message waits.
  static void AControlMessageBesideALine(Model& m) {
    auto& box = m.Make<Box>(1u, 1);
    box.Send(1, 1);
    m.Thread("receiver", [&] { box.Receive(); });
    m.Thread("control", [&] { box.Send(1, 5); });
    m.After([&] {
      MODEL_ASSERT(box.HasPushed(5), "a control message waits although there is room in the reserve");
      box.ExpectAllArrive(3);
    });
  }

  // One actor after the other: a late sender of the first, one of the second.
  static void ALateSender(Model& m) {
    auto& box = m.Make<Box>(1u, 0);
    m.Thread("holder", [&] { box.Replace(2); });
    m.Thread("late", [&] { box.Send(1, 1); });
    m.Thread("new", [&] { box.Send(2, 2); });
    m.After([&] { box.ExpectAllArrive(2); });
  }

  // A message of the first actor becomes a dead letter while a sender finds no room at the second.
  // By the rules of the second actor the sender must be let in then, by those of the first it must
  // not.
  static void WhatAnEarlierActorLeft(Model& m) {
    auto& box = m.Make<Box>(1u, 2);
    m.Thread("holder", [&] { box.Replace(2); });
    m.Thread("new", [&] { box.Send(2, 2); });
    m.Thread("dead letters", [&] { box.Receive(); });
    m.After([&] {
      box.ExpectNobodyWaitsAtAHalfEmptyMailbox();
      box.ExpectAllArrive(3);
    });
  }

  // One thread lets in the line while the other takes one more message out.
  static void TwoWhoTakeOut(Model& m) {
    auto& box = m.Make<Box>(3u, 3);
    box.Send(3, 1);
    m.Thread("receiver", [&] {
      box.Receive();
      box.Receive();
    });
    m.Thread("dead letters", [&] { box.Lose(); });
    m.After([&] { box.ExpectAllArrive(4); });
  }

  // The only message leaves unhandled while a sender finds no room, and no other message comes.
  static void ASenderAtAMailboxThatIsEmptied(Model& m) {
    auto& box = m.Make<Box>(1u, 1);
    m.Thread("dead letters", [&] { box.Lose(); });
    m.Thread("sender", [&] { box.Send(1, 1); });
    m.After([&] {
      box.ExpectNobodyWaitsAtAHalfEmptyMailbox();
      box.ExpectAllArrive(2);
    });
  }

  static std::vector<ModelTest> All() {
    return {{"a sender at a full mailbox", ASenderAtAFullMailbox},
            {"two senders at a full mailbox", TwoSendersAtAFullMailbox},
            {"two messages of one sender", TwoMessagesOfOneSender},
            {"two control messages of one sender", TwoControlMessagesOfOneSender},
            {"a control message beside a line", AControlMessageBesideALine},
            {"a late sender", ALateSender},
            {"what an earlier actor left", WhatAnEarlierActorLeft},
            {"two who take out", TwoWhoTakeOut},
            {"a sender at a mailbox that is emptied", ASenderAtAMailboxThatIsEmptied}};
  }
};

TEST(LimitWordInterleaving, LosesNoWakeUpAndCountsForTheRightActor) { ExpectAllPass(Cases<Mutation::kNone>::All()); }

template <Mutation kMutation>
std::string WhatFails() {
  return FirstFailure(Cases<kMutation>::All());
}

TEST(LimitWordInterleaving, FailsIfAStepIsLeftOut) {
  EXPECT_EQ(WhatFails<Mutation::kNoSecondLook>(), "assertion in a sender at a full mailbox");
  EXPECT_EQ(WhatFails<Mutation::kStopsWaitingFirst>(), "assertion in two messages of one sender");
  EXPECT_EQ(WhatFails<Mutation::kForgetsTheRest>(), "assertion in two senders at a full mailbox");
  EXPECT_EQ(WhatFails<Mutation::kNoGeneration>(), "assertion in a late sender");
  EXPECT_EQ(WhatFails<Mutation::kControlOvertakes>(), "assertion in two control messages of one sender");
  EXPECT_EQ(WhatFails<Mutation::kLosesSilently>(), "assertion in a sender at a mailbox that is emptied");
}

TEST(LimitWordInterleaving, FailsIfAnyMemoryOrderIsWeaker) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, Cases<Mutation::kNone>::All(), "limit_word.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  EXPECT_EQ(report.unnoticed, std::vector<std::string>{}) << report.text;
  EXPECT_EQ(report.weakenings, 3) << report.text;
}

}  // namespace
}  // namespace fraktor::actor_internal
