#include "fraktor/cluster/embedded/embedded_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/identity/check_authority.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/membership/topology_board.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

namespace {

std::string StoreAt(const std::string& authority) {
  return authority.empty() ? "the cluster's store, on this node"
                           : absl::StrCat("the cluster's store, at \"", authority, "\"");
}

}  // namespace

// The latest topology, and who wants to hear of it.
struct EmbeddedClient::Board {
  void Post(const EmbeddedTopology& news) {
    absl::StatusOr<ClusterTopologyPtr> topology = ClusterTopology::Make(news.epoch, news.members);
    if (!topology.ok()) return;  // of a store that is another version
    {
      MutexLock lock(mutex);
      if ((*topology)->epoch() <= latest->epoch()) return;
      latest = *topology;
      board.Post(latest);
    }
    board.Deliver();
  }

  TopologyBoard board;
  Mutex mutex;
  ClusterTopologyPtr latest ABSL_GUARDED_BY(mutex) = ClusterTopology::Empty();
};

// Asks for topologies again and again, for as long as there is a client.
class EmbeddedClient::Ear final : public ActorInstance {
 public:
  Ear(std::weak_ptr<Board> board, ActorRef store, absl::Duration period)
      : board_(std::move(board)), store_(store), period_(period) {}

  absl::Status PreStart(ActorContext& context) override {
    FRAKTOR_ASSIGN_OR_RETURN(
        timer_, context.system().toolbox().SchedulePeriodic({.period = period_, .initial_delay = absl::ZeroDuration()},
                                                            [self = context.self()] { fraktor::Tell(self, Tick{}); }));
    return absl::OkStatus();
  }
  void PostStop(ActorContext& context) override { context.system().toolbox().CancelTimer(timer_); }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const std::shared_ptr<Board> board = board_.lock();
    if (board == nullptr) {
      context.Stop();
    } else if (message.Is<Tick>()) {
      uint64_t epoch = 0;
      {
        MutexLock lock(board->mutex);
        epoch = board->latest->epoch();
      }
      context.Tell(store_, EmbeddedWatch{.known_epoch = epoch});
    } else if (const auto* const news = message.TryAs<EmbeddedTopology>()) {
      board->Post(*news);
    } else {
      return context.Unhandled(message);
    }
    return absl::OkStatus();
  }

 private:
  struct Tick {};

  const std::weak_ptr<Board> board_;
  const ActorRef store_;
  const absl::Duration period_;
  TimerId timer_;
};

absl::StatusOr<std::shared_ptr<EmbeddedClient>> EmbeddedClient::Make(ActorSystem& system,
                                                                     const EmbeddedClientOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"EmbeddedClientOptions::answer_timeout", options.answer_timeout},
                                         {"EmbeddedClientOptions::watch_period", options.watch_period}}));
  if (!options.authority.empty()) {
    FRAKTOR_RETURN_IF_ERROR(CheckAuthority("EmbeddedClientOptions::authority", options.authority));
  }
  const std::string path = options.authority.empty()
                               ? std::string("/system/cluster-store")
                               : absl::StrCat(system.options().config.scheme, "://", ToAbsl(system.name()), "@",
                                              options.authority, "/system/cluster-store");
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef store, system.Resolve(path));
  if (store.IsRemote() && CodecsOf(system).Find<EmbeddedAcquire>() == nullptr) {
    return absl::InvalidArgumentError(
        "the system cannot talk to the cluster's store: add EmbeddedCodecs() to ActorSystemOptions::codecs");
  }
  std::shared_ptr<EmbeddedClient> client(new EmbeddedClient(system, options, store));
  FRAKTOR_RETURN_IF_ERROR(
      system.TrySpawnSystemActor(*MakeProps<Ear>({}, std::weak_ptr<Board>(client->board_), store, options.watch_period))
          .status());
  return client;
}

EmbeddedClient::EmbeddedClient(ActorSystem& system, const EmbeddedClientOptions& options, ActorRef store)
    : system_(system), options_(options), store_(store), board_(std::make_shared<Board>()) {}

EmbeddedClient::~EmbeddedClient() = default;

template <class Request>
Future<typename Request::Reply> EmbeddedClient::Ask(Request request) {
  using Reply = typename Request::Reply;
  // Only a timeout of this ask says that the store does not answer. A reply of the store may carry
  // the timeout of another ask.
  const auto explain = [](absl::Status error) {
    return absl::IsDeadlineExceeded(error) ? absl::UnavailableError("it does not answer") : error;
  };
  return system_.Ask<Reply>(store_, std::move(request), options_.answer_timeout, explain)
      .MapResult([authority = options_.authority](absl::StatusOr<Reply> reply) {
        return Annotate(std::move(reply), StoreAt(authority));
      });
}

template <class Request>
Future<void> EmbeddedClient::AskToDo(Request request) {
  return Ask(std::move(request)).MapResult([](absl::StatusOr<EmbeddedDone> done) { return done.status(); });
}

Future<PlacementLease> EmbeddedClient::TryAcquire(GrainKey key, std::string owner, Instant now) {
  return Ask(EmbeddedAcquire{.key = key, .owner = owner})
      .MapResult([key, owner, now](absl::StatusOr<EmbeddedLease> lease) -> absl::StatusOr<PlacementLease> {
        if (!lease.ok()) return lease.status();
        return PlacementLease{.key = key, .owner = owner, .expires_at = now + lease->ttl, .token = lease->token};
      });
}

Future<void> EmbeddedClient::Release(PlacementLease lease) {
  return AskToDo(EmbeddedRelease{.key = std::move(lease.key), .owner = std::move(lease.owner), .token = lease.token});
}

Future<LoadedActivation> EmbeddedClient::Load(GrainKey key) {
  return Ask(EmbeddedLoad{.key = std::move(key)})
      .MapResult([](absl::StatusOr<EmbeddedLoaded> loaded) -> absl::StatusOr<LoadedActivation> {
        if (!loaded.ok()) return loaded.status();
        return LoadedActivation{.exists = loaded->exists, .entry = std::move(loaded->entry)};
      });
}

Future<void> EmbeddedClient::Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) {
  return AskToDo(EmbeddedPut{.key = std::move(key), .entry = std::move(entry), .expected_token = expected_token});
}

Future<void> EmbeddedClient::Remove(GrainKey key, uint64_t token) {
  return AskToDo(EmbeddedRemove{.key = std::move(key), .token = token});
}

Future<MembershipTerm> EmbeddedClient::Join(MemberCandidate candidate, Instant now) {
  return Ask(EmbeddedJoin{.authority = std::move(candidate.authority),
                          .system_uid = candidate.system_uid,
                          .kinds = std::move(candidate.kinds),
                          .oldest_kinds = std::move(candidate.oldest_kinds)})
      .MapResult([now](absl::StatusOr<EmbeddedTerm> term) -> absl::StatusOr<MembershipTerm> {
        if (!term.ok()) return term.status();
        return MembershipTerm{.member = std::move(term->member), .valid_until = now + term->term};
      });
}

Future<MembershipTerm> EmbeddedClient::Renew(std::string member_id, Instant now) {
  return Ask(EmbeddedRenew{.member_id = std::move(member_id)})
      .MapResult([now](absl::StatusOr<EmbeddedTerm> term) -> absl::StatusOr<MembershipTerm> {
        if (!term.ok()) return term.status();
        return MembershipTerm{.member = std::move(term->member), .valid_until = now + term->term};
      });
}

Future<void> EmbeddedClient::BeginLeaving(std::string member_id) {
  return AskToDo(EmbeddedBeginLeaving{.member_id = std::move(member_id)});
}

Future<void> EmbeddedClient::Leave(std::string member_id) {
  return AskToDo(EmbeddedLeave{.member_id = std::move(member_id)});
}

MembershipListenerId EmbeddedClient::Listen(Listener listener) {
  MembershipListenerId id;
  {
    MutexLock lock(board_->mutex);
    id = board_->board.Add(std::move(listener), board_->latest);
  }
  board_->board.Deliver();
  return id;
}

std::vector<std::string> EmbeddedClient::Authorities() const {
  if (options_.authority.empty()) return {};
  return {options_.authority};
}

void EmbeddedClient::StopListening(MembershipListenerId id) { board_->board.Remove(id); }

}  // namespace fraktor::inline v0
