#include "fraktor/actor/mailbox/internal/envelope_list.h"

#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::actor_internal {
namespace {

Envelope* Number(int number) { return MakeEnvelope<int>(ActorRef(), number).release(); }

EnvelopeList ListOf(const std::vector<int>& numbers) {
  EnvelopeList list;
  for (int number : numbers) list.PushBack(Number(number));
  return list;
}

// Empties the list.
std::vector<int> NumbersOf(EnvelopeList list) {
  std::vector<int> numbers;
  while (Envelope* const envelope = list.PopFront()) numbers.push_back(EnvelopePtr(envelope)->As<int>());
  EXPECT_TRUE(list.empty());
  return numbers;
}

TEST(EnvelopeList, KeepsTheOrderOfPushes) {
  EnvelopeList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.PopFront(), nullptr);
  list.PushBack(Number(2));
  list.PushBack(Number(3));
  list.PushFront(Number(1));
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(NumbersOf(list), (std::vector<int>{1, 2, 3}));
}

TEST(EnvelopeList, MayBeginAtTheFront) {
  EnvelopeList list;
  list.PushFront(Number(1));
  list.PushBack(Number(2));
  EXPECT_EQ(NumbersOf(list), (std::vector<int>{1, 2}));
}

TEST(EnvelopeList, IsUsableAgainWhenItWasEmptied) {
  EnvelopeList list = ListOf({1});
  EnvelopePtr first(list.PopFront());
  list.PushBack(Number(2));
  list.PushBack(Number(3));
  EXPECT_EQ(NumbersOf(list), (std::vector<int>{2, 3}));
}

TEST(EnvelopeList, TakesAnotherListBehindOrBefore) {
  EnvelopeList list = ListOf({3, 4});
  list.Append(ListOf({5}));
  list.Prepend(ListOf({1, 2}));
  list.PushBack(Number(6));
  EXPECT_EQ(NumbersOf(list), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST(EnvelopeList, IsNotChangedByAnEmptyOne) {
  EnvelopeList list = ListOf({1});
  list.Append({});
  list.Prepend({});
  EnvelopeList empty;
  empty.Append(list);
  EXPECT_EQ(NumbersOf(empty), (std::vector<int>{1}));
  EnvelopeList other;
  other.Prepend(ListOf({7}));
  other.PushBack(Number(8));
  EXPECT_EQ(NumbersOf(other), (std::vector<int>{7, 8}));
}

}  // namespace
}  // namespace fraktor::actor_internal
