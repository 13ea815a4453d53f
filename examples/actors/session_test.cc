// How actors are tested: with probes, in virtual time.
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/timer/receive_timeout.h"

namespace {

struct Use {};
struct Expired {
  int used;
};

class Session : public fraktor::Actor<Session, Use> {
 public:
  explicit Session(fraktor::ActorRef owner) : owner_(owner) {}

  absl::Status PreStart(Context& context) { return fraktor::SetReceiveTimeout(context, absl::Hours(1)); }
  void On(Context&, const Use&) { ++used_; }
  void On(Context& context, const fraktor::ReceiveTimeout&) {
    context.Tell(owner_, Expired{used_});
    context.Stop();
  }

 private:
  const fraktor::ActorRef owner_;
  int used_ = 0;
};

TEST(Session, ExpiresAnHourAfterItsLastUse) {
  fraktor::TestKit kit;
  auto probe = kit.Probe();
  auto session = kit.Spawn<Session>(probe.ref());
  probe.Watch(session);
  kit.Advance(absl::Minutes(59));
  session.Tell(Use{});
  kit.Advance(absl::Minutes(59));
  probe.ExpectNoMessage();
  kit.Advance(absl::Minutes(1));
  EXPECT_EQ(probe.Expect<Expired>().used, 1);
  probe.ExpectTerminated(session);
}

}  // namespace
