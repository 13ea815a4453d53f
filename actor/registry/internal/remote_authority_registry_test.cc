#include "fraktor/actor/registry/internal/remote_authority_registry.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {

using actor_internal::AuthorityInfo;
using actor_internal::RemoteAuthorityRegistry;

namespace {

// Move-only, as envelopes are.
struct Envelope {
  explicit Envelope(int n) : number(std::make_unique<int>(n)), recipient(absl::StrCat("pekko://peer@h:1/user/", n)) {}
  std::unique_ptr<int> number;
  std::string recipient;
};

AllDeadLetters Describe(const Envelope& envelope) {
  return {.reason = {},
          .sender = "pekko://s/user/me",
          .recipient = envelope.recipient,
          .message = {.type_name = "int", .type = nullptr, .message = envelope.number.get()},
          .at = {}};
}

using Registry = RemoteAuthorityRegistry<Envelope>;
using Kind = PathResolutionErrorKind;
using Log = std::vector<std::string>;

PathAuthority Peer(std::string_view host = "h", std::string_view protocol = "pekko") {
  return *PathAuthority::Create(protocol, host, 1);
}

class RemoteAuthorityRegistryTest : public ::testing::Test {
 protected:
  RemoteAuthorityRegistryTest() {
    changes_ = stream_.Listen<AuthorityStateChanged>([this](const AuthorityStateChanged& change) {
      log_.push_back(absl::StrCat(change.from.has_value() ? ToAbsl(NameOf(*change.from)) : absl::string_view("none"),
                                  " -> ", ToAbsl(NameOf(change.to)), ": ", ToAbsl(NameOf(change.cause))));
    });
    refusals_ = stream_.Listen<InvalidAssociation>(
        [this](const InvalidAssociation& event) { log_.push_back(absl::StrCat("refused ", ToAbsl(event.recipient))); });
    letters_ = stream_.Listen<DeadLetter>([this](const DeadLetter& letter) {
      log_.push_back(
          absl::StrCat("dead ", ToAbsl(NameOf(letter.reason)), " ", *static_cast<const int*>(letter.message.message)));
    });
    Make({});
  }

  void Make(const RemotingConfig& config) { registry_ = *Registry::Create(config, &Describe, stream_, dead_letters_); }

  // Returns "send", "wait", or the kind of the error.
  std::string Offer(int number, const PathAuthority& authority = Peer()) {
    absl::StatusOr<std::optional<Envelope>> answer = registry_->Offer(authority, Envelope(number), now_);
    if (!answer.ok()) return KindText(answer.status());
    if (!answer->has_value()) return "wait";
    EXPECT_EQ(*(*answer)->number, number);
    return "send";
  }

  // Returns the numbers of the flushed messages, or the kind of the error.
  std::string Connect(uint64_t uid, const PathAuthority& authority = Peer()) {
    absl::StatusOr<std::deque<Envelope>> flushed = registry_->Connect(authority, "10.0.0.7:1", uid, now_);
    if (!flushed.ok()) return KindText(flushed.status());
    std::string numbers;
    for (const Envelope& envelope : *flushed) absl::StrAppend(&numbers, *envelope.number, " ");
    return numbers;
  }

  static std::string KindText(const absl::Status& status) {
    const std::optional<Kind> kind = ErrorKindOf<Kind>(status);
    if (kind == Kind::kIllegalTransition) return "illegal";
    if (kind == Kind::kAuthorityQuarantined) return "quarantined";
    if (kind == Kind::kAuthorityUnresolved) return "unresolved";
    if (ErrorKindOf<ActorPathErrorKind>(status) == ActorPathErrorKind::kUnsupportedAuthority) return "unsupported";
    return std::string(status.message());
  }

  bool Disconnect() { return Allowed(registry_->Disconnect(Peer(), now_)); }
  bool Quarantine(uint64_t uid) { return Allowed(registry_->Quarantine(Peer(), uid, "heartbeats stopped", now_)); }
  bool Override() { return Allowed(registry_->Override(Peer(), "10.0.0.8:1", now_)); }
  static bool Allowed(const absl::Status& status) {
    EXPECT_TRUE(status.ok() || KindText(status) == "illegal") << status;
    return status.ok();
  }

  std::optional<AuthorityState> state() const {
    const std::optional<AuthorityInfo> info = registry_->Find(Peer());
    if (!info.has_value()) return std::nullopt;
    return info->state;
  }

  // Returns the events since the last call.
  Log Take() { return std::exchange(log_, {}); }

  EventStream stream_;
  DeadLetters dead_letters_{stream_};
  Log log_;
  EventSubscription changes_, refusals_, letters_;
  std::unique_ptr<Registry> registry_;
  Instant now_;
};

// PTH-7: a caller that knows a better target withdraws its messages from the queue; the others keep
// their order.
TEST_F(RemoteAuthorityRegistryTest, GivesBackWhatIsWantedOfThoseThatWait) {
  for (int n = 1; n <= 4; ++n) EXPECT_EQ(Offer(n), "wait");
  log_.clear();
  const auto is_even = [](const Envelope& envelope) { return *envelope.number % 2 == 0; };
  std::string given;
  for (const Envelope& envelope : registry_->Withdraw(Peer(), is_even)) absl::StrAppend(&given, *envelope.number, " ");
  EXPECT_EQ(given, "2 4 ");
  EXPECT_EQ(log_, Log());
  EXPECT_TRUE(registry_->Withdraw(Peer("elsewhere"), is_even).empty());
  EXPECT_EQ(Connect(7), "1 3 ");
}

TEST_F(RemoteAuthorityRegistryTest, DefersUntilConnectedAndFlushesInOrder) {  // PTH-7
  EXPECT_EQ(Offer(1), "wait");
  EXPECT_EQ(Offer(2), "wait");
  EXPECT_EQ(Offer(3), "wait");
  EXPECT_EQ(state(), AuthorityState::kUnresolved);
  EXPECT_EQ(registry_->Find(Peer())->deferred, 3u);
  EXPECT_EQ(Connect(7), "1 2 3 ");
  EXPECT_EQ(state(), AuthorityState::kConnected);
  EXPECT_EQ(registry_->Find(Peer())->endpoint, "10.0.0.7:1");
  EXPECT_EQ(registry_->Find(Peer())->system_uid, 7u);
  EXPECT_EQ(Offer(4), "send");
  EXPECT_EQ(Take(), (Log{"none -> Unresolved: first seen", "Unresolved -> Connected: mapping registered"}));
}

TEST_F(RemoteAuthorityRegistryTest, DefersAgainWhenTheTransportDrops) {  // PTH-7
  Connect(7);
  Take();
  EXPECT_TRUE(Disconnect());
  EXPECT_EQ(state(), AuthorityState::kUnresolved);
  EXPECT_EQ(Offer(1), "wait");
  EXPECT_EQ(Connect(7), "1 ");
  EXPECT_EQ(Take(), (Log{"Connected -> Unresolved: transport dropped", "Unresolved -> Connected: mapping registered"}));
}

TEST_F(RemoteAuthorityRegistryTest, RefusesInQuarantineWithOneInvalidAssociationPerMessage) {  // PTH-7
  Connect(7);
  EXPECT_TRUE(Quarantine(7));
  Take();
  EXPECT_EQ(Offer(1), "quarantined");
  EXPECT_EQ(Offer(2), "quarantined");
  EXPECT_EQ(Take(), (Log{"refused pekko://peer@h:1/user/1", "dead quarantined 1", "refused pekko://peer@h:1/user/2",
                         "dead quarantined 2"}));
  const absl::Status error = registry_->Offer(Peer(), Envelope(3), now_).status();
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(error), ActorPathErrorKind::kQuarantined);  // PTH-9
  EXPECT_EQ(ErrorDetailOf<Kind>(error, "authority"), "pekko://h:1");
  EXPECT_EQ(
      ToStd(error.message()),
      "authority pekko://h:1 is in quarantine for another 120h because of \"heartbeats stopped\"; restart the peer, or "
      "override the quarantine");
}

TEST_F(RemoteAuthorityRegistryTest, ClearsWhatWaitsWhenQuarantineBegins) {  // PTH-7
  Connect(7);
  Disconnect();
  Offer(1);
  Offer(2);
  Take();
  EXPECT_TRUE(Quarantine(7));
  EXPECT_EQ(registry_->Find(Peer())->deferred, 0u);
  EXPECT_EQ(Take(), (Log{"Unresolved -> Quarantine: invalid association", "refused pekko://peer@h:1/user/1",
                         "dead quarantined 1", "refused pekko://peer@h:1/user/2", "dead quarantined 2"}));
}

TEST_F(RemoteAuthorityRegistryTest, EndsQuarantineExactlyAtTheDeadline) {  // PTH-7, PTH-8
  Make({.quarantine_duration = absl::Hours(1)});
  Connect(7);
  Quarantine(7);
  Take();
  now_ += absl::Hours(1) - absl::Nanoseconds(1);
  EXPECT_EQ(registry_->Tick(now_), 0u);
  EXPECT_EQ(state(), AuthorityState::kQuarantine);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(registry_->Tick(now_), 1u);
  EXPECT_EQ(state(), AuthorityState::kUnresolved);
  EXPECT_EQ(registry_->Tick(now_), 0u);
  EXPECT_EQ(Take(), (Log{"Quarantine -> Unresolved: duration elapsed"}));
  EXPECT_EQ(Offer(1), "wait");
  EXPECT_EQ(Connect(7), "1 ");  // the same system may come back
}

TEST_F(RemoteAuthorityRegistryTest, StaysInQuarantineForFiveDaysByDefault) {  // PTH-8
  Connect(7);
  Quarantine(7);
  now_ += absl::Hours(5 * 24) - absl::Nanoseconds(1);
  EXPECT_EQ(Offer(1), "quarantined");
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Offer(2), "wait");  // also without a tick in between
  EXPECT_EQ(state(), AuthorityState::kUnresolved);
  EXPECT_EQ(registry_->Tick(now_), 0u);
}

TEST_F(RemoteAuthorityRegistryTest, EndsQuarantinesInTheOrderOfTheirDeadlines) {
  Make({.quarantine_duration = absl::Minutes(1)});
  const std::vector<PathAuthority> peers = {Peer("c"), Peer("a"), Peer("b")};
  for (const PathAuthority& peer : peers) {
    Connect(7, peer);
    EXPECT_TRUE(registry_->Quarantine(peer, 7, "x", now_).ok());
    now_ += absl::Seconds(1);
  }
  std::string order;
  const EventSubscription subscription = stream_.Listen<AuthorityStateChanged>(
      [&](const AuthorityStateChanged& change) { order += change.authority.host(); });
  EXPECT_EQ(registry_->Tick(now_ + absl::Minutes(2)), 3u);
  EXPECT_EQ(order, "cab");
}

TEST_F(RemoteAuthorityRegistryTest, ConnectsAtOnceByManualOverride) {  // PTH-7
  Connect(7);
  Quarantine(7);
  Take();
  EXPECT_TRUE(Override());
  EXPECT_EQ(state(), AuthorityState::kConnected);
  EXPECT_EQ(registry_->Find(Peer())->endpoint, "10.0.0.8:1");
  EXPECT_EQ(Offer(1), "send");
  EXPECT_EQ(Take(), (Log{"Quarantine -> Connected: manual override"}));
  EXPECT_EQ(registry_->Tick(now_ + absl::Hours(1000)), 0u);  // the old deadline is gone
  EXPECT_EQ(state(), AuthorityState::kConnected);
}

TEST_F(RemoteAuthorityRegistryTest, StartsFreshWithANewSystem) {  // PTH-7
  Connect(7);
  Quarantine(7);
  Take();
  EXPECT_EQ(Connect(8), "");
  EXPECT_EQ(state(), AuthorityState::kConnected);
  EXPECT_EQ(registry_->Tick(now_ + absl::Hours(1000)), 0u);
  EXPECT_EQ(Take(), (Log{"Quarantine -> Connected: new incarnation"}));
  EXPECT_EQ(Connect(9), "");
  EXPECT_EQ(registry_->Find(Peer())->system_uid, 9u);
  EXPECT_EQ(Take(), (Log{"Connected -> Connected: new incarnation"}));
}

TEST_F(RemoteAuthorityRegistryTest, GivesNothingThatWaitedForTheOldSystemToTheNewOne) {  // PTH-7
  Connect(7);
  Disconnect();
  Offer(1);
  Offer(2);
  Take();
  EXPECT_EQ(Connect(8), "");
  EXPECT_EQ(Take(),
            (Log{"dead new_incarnation 1", "dead new_incarnation 2", "Unresolved -> Connected: new incarnation"}));
}

TEST_F(RemoteAuthorityRegistryTest, TakesTheSameSystemAgainWithoutAWord) {
  Connect(7);
  Take();
  EXPECT_EQ(Connect(7), "");
  EXPECT_EQ(Take(), Log{});
}

TEST_F(RemoteAuthorityRegistryTest, RefusesEveryTransitionThatTheStateDoesNotAllow) {  // PTH-7
  // Unknown authority.
  EXPECT_FALSE(Disconnect());
  EXPECT_FALSE(Quarantine(7));
  EXPECT_FALSE(Override());
  EXPECT_EQ(Connect(0), "illegal");
  EXPECT_EQ(state(), std::nullopt);
  EXPECT_EQ(Take(), Log{});
  // Unresolved; no system has replied yet.
  Offer(1);
  Take();
  EXPECT_FALSE(Disconnect());
  EXPECT_FALSE(Quarantine(7));
  EXPECT_FALSE(Quarantine(0));
  EXPECT_FALSE(Override());
  EXPECT_EQ(Connect(0), "illegal");
  EXPECT_EQ(state(), AuthorityState::kUnresolved);
  EXPECT_EQ(registry_->Find(Peer())->deferred, 1u);
  EXPECT_EQ(Take(), Log{});
  // Connected.
  EXPECT_EQ(Connect(7), "1 ");
  Take();
  EXPECT_FALSE(Quarantine(8));  // another system than the connected one
  EXPECT_FALSE(Quarantine(0));
  EXPECT_FALSE(Override());
  EXPECT_EQ(Connect(0), "illegal");
  EXPECT_EQ(state(), AuthorityState::kConnected);
  EXPECT_EQ(Take(), Log{});
  // Quarantine.
  EXPECT_TRUE(Quarantine(7));
  const Instant deadline = registry_->Find(Peer())->deadline;
  now_ += absl::Hours(1);
  Take();
  EXPECT_FALSE(Disconnect());
  EXPECT_FALSE(Quarantine(7));
  EXPECT_FALSE(Quarantine(8));
  EXPECT_EQ(Connect(7), "illegal");
  EXPECT_EQ(Connect(0), "illegal");
  EXPECT_EQ(state(), AuthorityState::kQuarantine);
  EXPECT_EQ(registry_->Find(Peer())->deadline, deadline);
  EXPECT_EQ(Take(), Log{});
}

TEST_F(RemoteAuthorityRegistryTest, SaysWhatIsIllegalAndWhy) {  // PTH-9
  Connect(7);
  EXPECT_EQ(ToStd(registry_->Override(Peer(), "x", now_).message()),
            "authority pekko://h:1 is in state Connected, which does not allow Override: only a quarantine can be "
            "overridden; to connect, call Connect");
  EXPECT_EQ(
      ToStd(registry_->Quarantine(Peer(), 8, "x", now_).message()),
      "authority pekko://h:1 is in state Connected, which does not allow Quarantine: system 8 is meant, but system 7 "
      "was met there last; give the uid that the handshake told");
  EXPECT_EQ(
      ToStd(registry_->Quarantine(*PathAuthority::Create("pekko", "other", 1), 8, "x", now_).message()),
      "authority pekko://other:1 is not known, which does not allow Quarantine: system 8 is meant, but no system was "
      "met there; give the uid that the handshake told");
}

TEST_F(RemoteAuthorityRegistryTest, CapsWhatWaitsAtAThousandByDefault) {  // PTH-7
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Offer(i), "wait");
  Take();
  EXPECT_EQ(Offer(1000), "unresolved");
  EXPECT_EQ(Take(), (Log{"dead unresolved_full 1000"}));
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kUnresolvedFull), 1u);
  EXPECT_EQ(Offer(1, Peer("other")), "wait");  // each authority has its own queue
  const std::string flushed = Connect(7);
  EXPECT_EQ(flushed.substr(0, 8), "0 1 2 3 ");
  EXPECT_EQ(flushed.substr(flushed.size() - 8), "998 999 ");
}

TEST_F(RemoteAuthorityRegistryTest, TakesTheCapFromTheConfig) {
  Make({.max_deferred_per_authority = 2});
  EXPECT_EQ(Offer(1), "wait");
  EXPECT_EQ(Offer(2), "wait");
  EXPECT_EQ(Offer(3), "unresolved");
  EXPECT_EQ(Connect(7), "1 2 ");
}

TEST_F(RemoteAuthorityRegistryTest, NeverLetsAnUnknownProtocolIn) {  // PTH-7
  const PathAuthority peer = Peer("h", "akka");
  EXPECT_EQ(Offer(1, peer), "unsupported");
  EXPECT_EQ(Connect(7, peer), "unsupported");
  EXPECT_EQ(registry_->size(), 0u);
  EXPECT_EQ(Take(), (Log{"dead unsupported 1"}));
}

TEST_F(RemoteAuthorityRegistryTest, MakesRoomOfTheLeastUsedOneThatIsIdle) {
  Make({.max_authorities = 3});
  Connect(7, Peer("connected"));
  Offer(1, Peer("waited-for"));
  Connect(7, Peer("idle"));
  EXPECT_TRUE(registry_->Disconnect(Peer("idle"), now_).ok());
  EXPECT_EQ(Offer(2, Peer("new")), "wait");
  EXPECT_FALSE(registry_->Find(Peer("idle")).has_value());
  EXPECT_EQ(Offer(3, Peer("newer")), "unresolved");
  EXPECT_EQ(registry_->size(), 3u);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kUnsupported), 1u);
}

TEST_F(RemoteAuthorityRegistryTest, TellsAboutQuarantineInDetail) {  // PTH-7
  std::string seen;
  const EventSubscription subscription = stream_.Listen<QuarantinedEvent>([&](const QuarantinedEvent& event) {
    seen = absl::StrCat(event.authority.ToString(), " ", ToAbsl(event.reason), " ", event.system_uid, " ",
                        absl::FormatDuration(event.deadline - event.at), " ", event.lost);
  });
  Connect(7);
  Disconnect();
  Offer(1);
  Quarantine(7);
  EXPECT_EQ(seen, "pekko://h:1 heartbeats stopped 7 120h 1");
}

TEST(RemotingConfig, RefusesWhatCannotWork) {  // PTH-8
  EventStream stream;
  DeadLetters dead_letters(stream);
  auto create = [&](const RemotingConfig& config) {
    return Registry::Create(config, &Describe, stream, dead_letters).status();
  };
  EXPECT_TRUE(create({}).ok());
  EXPECT_TRUE(create({.quarantine_duration = absl::Seconds(1)}).ok());
  EXPECT_EQ(create({.quarantine_duration = absl::Seconds(1) - absl::Nanoseconds(1)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.max_deferred_per_authority = 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.max_authorities = 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.canonical_hostname = "a b"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.canonical_hostname = ""}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.canonical_hostname = "is_valid.org"}).code(),
            absl::StatusCode::kInvalidArgument);  // no peer could read it
  EXPECT_EQ(RemotingConfig().quarantine_duration, absl::Hours(120));
}

}  // namespace
}  // namespace fraktor
