#include "fraktor/remote/association/remote_door.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/remote/association/nodes_fixture.h"

namespace fraktor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Writes down what happens to it. Questions above 100 are not its business; of the others it makes notes for `to`.
class WatchedDoor final : public RemoteDoor {
 public:
  explicit WatchedDoor(ActorRef to) : to_(to) {}

  uint32_t BeginBatch() override {
    happened.push_back("begin");
    return ++batches_;
  }
  std::optional<Delivery> Enter(uint32_t batch, const Arrival& arrival) override {
    Decoder in(arrival.payload, arrival.version, arrival.version, arrival.context);
    const Question question = Codec<Question>::Decode(in);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(batch, batches_);
    EXPECT_FALSE(arrival.sender.IsNoOne());
    happened.push_back(absl::StrCat("question ", question.number, " from ", arrival.from.ToString()));
    if (question.number > 100) return std::nullopt;
    return Delivery{.to = to_, .message = MakeEnvelope<Note>(arrival.sender, Note{.number = question.number})};
  }
  void EndBatch(uint32_t batch) override {
    EXPECT_EQ(batch, batches_);
    happened.push_back("end");
  }

  std::vector<std::string> happened = {};

 private:
  const ActorRef to_;
  uint32_t batches_ = 0;
};

class RemoteDoorTest : public NodesTest {
 protected:
  RemoteDoorTest()
      : a_(Add("a")),
        b_(Add("b")),
        echo_(b_.kit->SpawnNamed<Echo>("echo").untyped()),
        inside_(b_.kit->Probe()),
        door_(inside_.ref()) {
    Meet(a_, b_);
  }

  const TestNode a_;
  const TestNode b_;
  const ActorRef echo_;
  TestProbe inside_;
  WatchedDoor door_;
};

TEST_F(RemoteDoorTest, DecidesWhoGetsWhatOfMessagesOfItsTypeToItsActor) {
  b_.kit->SpawnNamed<Echo>("other");
  b_.remoting->OpenDoor(echo_, MessageTypeOf<Question>(), door_);
  TestProbe probe = a_.kit->Probe();
  probe.Send(b_.From(a_, "/user/echo"), Question{1});
  const Note note = inside_.Expect<Note>();
  EXPECT_EQ(note.number, 1);
  EXPECT_THAT(door_.happened, ElementsAre("begin", "question 1 from pekko://a@a:2552", "end"));
  // Its sender is who sent the question.
  inside_.Reply(Note{.number = 7});
  EXPECT_EQ(probe.Expect<Note>().number, 7);
  door_.happened.clear();
  // Another type, another actor, and one that it does not want.
  probe.Send(b_.From(a_, "/user/echo"), Note{.number = 2});
  EXPECT_EQ(probe.Expect<Note>().number, 2);
  probe.Send(b_.From(a_, "/user/other"), Question{3});
  EXPECT_EQ(probe.Expect<Note>().number, 4);
  EXPECT_THAT(door_.happened, IsEmpty());
  probe.Send(b_.From(a_, "/user/echo"), Question{101});
  EXPECT_EQ(probe.Expect<Note>().number, 102);
  inside_.ExpectNoMessage();
}

// What is sent in one go is one batch; nothing overtakes, whoever delivers it.
TEST_F(RemoteDoorTest, IsEnteredInTheOrderInWhichMessagesWereSent) {
  WatchedDoor back(echo_);  // Its notes go to the actor, which echoes them.
  b_.remoting->OpenDoor(echo_, MessageTypeOf<Question>(), back);
  TestProbe probe = a_.kit->Probe();
  const ActorRef echo = b_.From(a_, "/user/echo");
  std::vector<int64_t> sent;
  for (int64_t number = 1; number <= 30; ++number) {
    // By the door, past it, and around it.
    if (number % 3 == 0) {
      probe.Send(echo, Question{number});
      sent.push_back(number);
    } else if (number % 3 == 1) {
      probe.Send(echo, Question{number + 1000});
      sent.push_back(number + 1001);
    } else {
      probe.Send(echo, Note{.number = number});
      sent.push_back(number);
    }
  }
  std::vector<int64_t> came;
  for (size_t i = 0; i < sent.size(); ++i) came.push_back(probe.Expect<Note>().number);
  EXPECT_EQ(came, sent);
  // Each beginning has its end before the next one.
  int open = 0;
  for (const std::string& what : back.happened) {
    open += what == "begin" ? 1 : what == "end" ? -1 : 0;
    EXPECT_TRUE(open == 0 || open == 1) << open;
  }
  EXPECT_EQ(open, 0);
}

TEST_F(RemoteDoorTest, IsReplacedByTheNextOne) {
  TestProbe later_inside = b_.kit->Probe();
  WatchedDoor later(later_inside.ref());
  b_.remoting->OpenDoor(echo_, MessageTypeOf<Question>(), door_);
  b_.remoting->OpenDoor(echo_, MessageTypeOf<Question>(), later);
  TestProbe probe = a_.kit->Probe();
  probe.Send(b_.From(a_, "/user/echo"), Question{5});
  EXPECT_EQ(later_inside.Expect<Note>().number, 5);
  EXPECT_THAT(door_.happened, IsEmpty());
}

}  // namespace
}  // namespace fraktor
