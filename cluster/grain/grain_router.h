// GrainRouter: the actor of a node through which grains are reached, and whose children they are: /system/grains.
//
// A call goes to the grain if it runs here, to the router of the member where it is otherwise; the sender stays who it
// was, so answers go back directly. Where a grain is on other nodes is asked of its owner once (LocateGrain), and
// remembered; from then on a call takes one message, as any other to another node. While the place is being found out,
// calls for the grain wait, in order. What fails in a way that may pass is tried again with growing pauses for as long as
// somebody waits. What cannot be delivered is a dead letter, and its sender gets an ErrorReply.
//
// Calls go to the router of the node and not to the grain itself, since the router knows what to do with one that finds
// no grain: it activates it again or sends the call on, and tells the node that it came from. And a use counts.
//
// A call that another node sends back, since it cannot run the grain now, waits for a while, longer each time, and is sent
// again, until the timeout of the question.
//
// A call that remoting gives back, because the node that it was for has been started again meanwhile or is in quarantine,
// has not left this node: so it is sent again. One that has left it is not, since nobody knows whether it was handled.
//
// Its children are the grains, named after them: /system/grains/account:alice. What a grain fails with concerns that grain:
// it is restarted, or stopped if it could not start, or if another actor would escalate (`throw 7`); who asks for it next
// activates it anew. What others' code throws in turns of the router (factories, filters, codecs, stores, peers) is an
// error for whoever has called, and no failure of the router. If it fails all the same, its grains end and are handed back
// to placement before its next life begins, so that they are activated anew, here or elsewhere. If it ends, this node is no
// member any longer than its term.
//
// What can be done at once is done in the turn in which it is asked for: with a store that answers at once, a grain of
// this node is found, started and has its message in one turn.
//
// Messages of one caller to one grain arrive in the order in which they were sent, as long as the grain stays where it
// is: all go through the same two routers, or past them, which one does only when those before it have left them
// (GrainGate).
//
//   const PropsPtr props = MakeProps<GrainRouter>({}, std::shared_ptr<const GrainRouterParts>(parts));
//   ActorRef router = system.SpawnSystemActor(*props, "grains");
//   Tell(router, GrainCall{.key = GrainKey("account", "alice"), .message = MakeEnvelope<Deposit>(ActorRef(), Deposit{10})});
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/router_counts.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0 {

class GrainGate;

struct StartGrain {
  GrainKey key;
  uint64_t token;
  Promise<ActivationRecord> started;
};
struct StopGrain {
  GrainKey key;
  uint64_t token;
  Promise<void> stopped;
};

// Members have left, so calls that wait for connections to them have to go elsewhere. Applied in a turn of the router: none of
// them is overtaken by one that is sent later, and none is sent to a node after what waits for it was taken back.
struct MembersLeft {
  ClusterTopologyPtr topology;
  // Where they were, and who.
  std::vector<PathAuthority> left;
  std::vector<std::string> ids;
};

// This node was that member, and has left: the others are asked whether they know it. Kept when all do, and all that they
// have sent here before is on its way to where it belongs.
struct SayFarewell {
  std::string member;
  Promise<void> said;
};

// What a life of a router leaves to the next: grains that end before that begins.
struct GrainEstate {
  struct Grain {
    GrainKey key;
    uint64_t token = 0;
    // Placement has ended it: who waits for that. Otherwise it is told.
    bool is_stopping = false;
    std::vector<Promise<void>> stopped = {};
    std::vector<StartGrain> next = {};
  };
  std::vector<Grain> grains = {};
};

// What a router needs, and what outlives it.
struct GrainRouterParts {
  std::string authority;
  std::vector<GrainKind> kinds;
  std::shared_ptr<GrainPeers> peers;
  const CodecRegistry* codecs = nullptr;
  // RemoteOptions::untrusted.
  bool is_untrusted = false;
  Executor* executor = nullptr;
  // Both are there before the router is: other nodes, which may know this one of old, call it as soon as it is spawned.
  PlacementCoordinatorDriver* driver = nullptr;
  GrainGate* gate = nullptr;
  // Calls that wait for their grains; one more is refused.
  size_t max_waiting = 100'000;
  // How long a call waits that expects no answer.
  absl::Duration max_wait = absl::Seconds(15);
  // An owner that has not said for so long where a grain is is asked again.
  absl::Duration locate_timeout = absl::Seconds(3);
  absl::Duration min_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  GrainCallFilters incoming_filters = {};
  GrainCallFilters outgoing_filters = {};
  // Gives calls and questions back to the router that wait for connections to these nodes. Null: none do.
  std::function<void(const std::vector<PathAuthority>& left)> give_back = nullptr;
  // The router has ended, and with it all that runs here. In its last turn.
  std::function<void()> on_ended = nullptr;
  CallOpening opening() const { return {.codecs = codecs, .refuses_harmful = is_untrusted}; }

  // Of the router's turns.
  const std::shared_ptr<GrainEstate> estate = std::make_shared<GrainEstate>();
  const std::shared_ptr<RouterCounts> counts = std::make_shared<RouterCounts>();
};

// The name of a grain's actor: "account:alice". What a path does not allow is replaced and what is too long is cut, and
// then a number follows by which it stays that of this grain alone.
std::string GrainActorName(const GrainKey& key);

class GrainRouter final : public ActorInstance {
 public:
  explicit GrainRouter(std::shared_ptr<const GrainRouterParts> parts);

  absl::Status Receive(ActorContext& context, Envelope& message) override;
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override;
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override;
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) override;
  void PostStop(ActorContext& context) override;
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override;

  // If this is called in a turn of the router `self`, starts the grain now, as a StartGrain would. None otherwise.
  static std::optional<Future<ActivationRecord>> StartInTurn(ActorRef self, const GrainKey& key, uint64_t token);

 private:
  static constexpr uint32_t kMaxHops = 6;
  // So often a call that expects no answer is tried again after a node has sent it back; a question is until its timeout.
  static constexpr uint32_t kMaxSentBack = 12;
  // For a question of another node, whatever its timeout.
  static constexpr absl::Duration kMaxWaitOfOthers = absl::Hours(1);
  // So often a question is given to another activation since the last one has ended before it has handled it.
  static constexpr uint32_t kMaxReturns = 16;
  static constexpr size_t kRememberedReturns = 4096;
  // Questions of other routers that are being answered; a further one is told to come again.
  static constexpr size_t kMaxInquiries = 65'536;
  static constexpr size_t kRememberedLeaves = 1024;
  // Between two questions whether others know that this node has left.
  static constexpr absl::Duration kMinFarewellPause = absl::Milliseconds(5);
  static constexpr absl::Duration kMaxFarewellPause = absl::Milliseconds(100);

  // What is to be done when a grain has ended.
  struct Legacy {
    // Why it could not be started.
    absl::Status failure = {};
    // Calls that it has not handled, since it ends by itself: for the next one. Later ones wait behind them.
    std::vector<GrainCall> unhandled = {};
    std::vector<Promise<void>> stopped = {};
    // One with a newer token that begins when this one has ended.
    std::vector<StartGrain> next = {};
  };
  struct Grain {
    ActorRef actor = {};
    uint64_t token = 0;
    const GrainCallFilters* filters = nullptr;  // null: none
    bool is_stopping = false;
    std::unique_ptr<Legacy> legacy = nullptr;  // null: nothing yet, as for nearly all

    Legacy& Leave() {
      if (legacy == nullptr) legacy = std::make_unique<Legacy>();
      return *legacy;
    }
    bool HasUnhandled() const { return legacy != nullptr && !legacy->unhandled.empty(); }
  };
  struct GrainEnded {
    GrainKey key;
    uint64_t token;
  };
  struct GrainFound {
    GrainKey key;
    uint64_t attempt;
    absl::StatusOr<PlacementResolutionPtr> found;
  };
  // An inquiry of another router has been answered here.
  struct InquiryAnswered {
    uint64_t number;
    GrainKey key;
    absl::StatusOr<PlacementResolutionPtr> found;
  };
  struct LookupsDue {};
  struct FarewellDue {};
  // Remoting has given it back: it has not left this node.
  struct CallLost {
    GrainCall call;
    DeadLetterReason reason;
    absl::Status why;
  };
  struct LocateLost {
    GrainKey key;
    uint64_t attempt;
    DeadLetterReason reason;
  };
  // What remoting gives back while a turn asks for it.
  using TakenBack = std::vector<std::variant<CallLost, LocateLost>>;
  struct Farewell {
    std::string member;
    Promise<void> said;
    // The authorities of those who have not said that they have heard it.
    std::set<std::string, std::less<>> unheard = {};
    absl::Duration pause = kMinFarewellPause;
    TimerId timer = {};
  };
  // The turn that this thread is in.
  struct Turn;

  using Dues = std::multimap<Instant, GrainKey>;
  // A grain whose place is being found out.
  struct Lookup {
    std::vector<GrainCall> calls = {};
    Future<void> watching = {};
    // Which answer is waited for; others come too late.
    uint64_t attempt = 0;
    bool is_redirected = false;
    // Nothing is being asked until step_at; otherwise an answer is waited for until then.
    bool is_paused = false;
    Instant step_at = Instant::InfiniteFuture();
    int failures = 0;
    std::string asked = {};  // the authority of the owner that was asked
    ActorRef asked_router = {};
    absl::Status why = {};  // it is not known yet
    Dues::iterator due = {};
  };
  using Lookups = absl::flat_hash_map<GrainKey, Lookup>;
  struct Inquiry {
    ActorRef asker;
    uint64_t attempt = 0;
    Future<void> watching = {};
  };

  absl::Status Handle(ActorContext& context, Envelope& message);
  void OnCall(ActorContext& context, GrainCall call);
  void OnFound(ActorContext& context, const GrainFound& found);
  void OnLocated(ActorContext& context, GrainLocated located);
  void OnLocate(ActorContext& context, const LocateGrain& locate);
  void OnInquiryAnswered(ActorContext& context, const InquiryAnswered& answered);
  void OnGone(const GrainGone& gone);
  void OnCallLost(ActorContext& context, CallLost& lost);
  // By a node that could not run its grain: it is looked for again, after a pause.
  void OnSentBack(ActorContext& context, GrainCall call);
  void OnLocateLost(ActorContext& context, const LocateLost& lost);
  void OnDue(ActorContext& context);
  void OnMembersLeft(ActorContext& context, MembersLeft& change);
  void OnSayFarewell(ActorContext& context, SayFarewell& say);
  void OnFarewell(ActorContext& context, const GrainFarewell& farewell);
  void OnFarewellHeard(ActorContext& context, const FarewellHeard& heard);
  // Asks those who have not answered; or says that all have.
  void GoOnWithFarewell(ActorContext& context);
  void OnStart(ActorContext& context, StartGrain start);
  void OnStop(ActorContext& context, StopGrain stop);
  void OnEnded(ActorContext& context, GrainEnded& ended);
  void End(ActorContext& context, Grain& grain);
  // For the next one, which begins when this one has ended.
  void Keep(ActorContext& context, Grain& grain, GrainCall call);
  void PassOn(ActorContext& context, ActorRef actor, Legacy& legacy);
  // Whether an unhandled one is to be delivered again; otherwise it has been refused, or nobody waits for it.
  bool MayReturn(ActorContext& context, GrainCall& call);
  void HearOfUnhandled(ActorContext& context);

  void Wait(ActorContext& context, GrainCall call);
  // The lookup that it waits for, if that has just begun: then nothing has been asked. The end if it waits for one that
  // was there, or was refused.
  Lookups::iterator Enqueue(ActorContext& context, GrainCall call);
  // Begins, or begins again. The lookup may be over when it returns.
  void Ask(ActorContext& context, Lookups::iterator lookup);
  void Found(ActorContext& context, Lookups::iterator lookup, const absl::StatusOr<PlacementResolutionPtr>& found);
  void Locate(ActorContext& context, Lookups::iterator lookup, const PlacementResolution& owner);
  void Settle(ActorContext& context, Lookups::iterator lookup, const PlacementResolution& where);
  void Fail(ActorContext& context, Lookups::iterator lookup, const absl::Status& why);
  void Pause(ActorContext& context, Lookups::iterator lookup, const absl::Status& why);
  void RefuseAll(ActorContext& context, Lookups::iterator lookup, const absl::Status& why);
  void SetDue(ActorContext& context, Lookups::iterator lookup);
  // Without its calls.
  std::vector<GrainCall> Take(Lookups::iterator lookup);

  void Deliver(ActorContext& context, GrainCall call, const PlacementResolution& where);
  // To the router that it came from, which looks for the grain anew.
  void SendBack(ActorContext& context, GrainCall call, const absl::Status& why);
  void Send(ActorContext& context, ActorRef router, GrainCall call);
  // At once if that is asked for in its turn, as a message otherwise.
  template <class Lost>
  static void GiveTo(ActorRef self, Lost lost);
  // From the first time on it is told of what does not leave this node. False if it cannot be.
  bool HearsOfLosses(ActorContext& context);
  void Refuse(ActorContext& context, GrainCall call, const absl::Status& why,
              DeadLetterReason reason = DeadLetterReason::kNoRecipient);
  // One that its filters have not let through.
  void RefuseFiltered(ActorContext& context, const GrainCall& call, const FilteredCalls::Entry& entry);
  // Who has called hears why it was refused, and the message is a dead letter.
  void SendError(ActorContext& context, const GrainCall& call, const absl::Status& why, DeadLetterReason reason);
  // One that cannot be opened.
  void RefuseClosed(ActorContext& context, const GrainCall& call, ActorRef sender, const absl::Status& why) const;
  // For somebody on another node: says which one this is, if it does not yet.
  absl::Status NamedHere(const absl::Status& why) const;
  GrainLocated Located(const GrainKey& key, uint64_t attempt,
                       const absl::StatusOr<PlacementResolutionPtr>& found) const;
  // What is remembered of one on another node has proved wrong.
  void ForgetPlace(const GrainKey& key);
  // What others' code throws is an error.
  absl::StatusOr<ActorRef> RouterAt(const std::string& authority);
  absl::StatusOr<ActorRef> Spawn(ActorContext& context, const GrainKind& kind, const GrainKey& key, uint64_t token);
  // What became of it, if that is known at once; otherwise `started`, which is called, gives the promise to be kept.
  std::optional<absl::StatusOr<ActivationRecord>> Start(ActorContext& context, const GrainKey& key, uint64_t token,
                                                        absl::FunctionRef<Promise<ActivationRecord>()> started);

  const std::shared_ptr<const GrainRouterParts> parts_;
  absl::flat_hash_map<std::string, const GrainKind*> kinds_;
  // Of the kinds that have any, those of the cluster included.
  std::map<std::string, GrainCallFilters, std::less<>> incoming_filters_;
  FilteredCalls filtered_;
  absl::flat_hash_map<GrainKey, Grain> grains_;
  Lookups lookups_;
  Dues dues_;
  Instant timer_at_ = Instant::InfiniteFuture();
  uint64_t next_number_ = 1;
  // Calls that wait, in lookups or for the end of a grain.
  RouterCount& waiting_;
  absl::flat_hash_map<uint64_t, Inquiry> inquiries_;
  // How often questions have come back unhandled, by who asks.
  absl::flat_hash_map<ActorRef, uint32_t> returns_;
  // Ids of members that have left: places that name them are out of date.
  std::set<std::string, std::less<>> left_;
  std::optional<Farewell> farewell_;
  // None: what is given back comes as a message.
  std::optional<TakenBack> taken_back_;
  EventSubscription losses_;
  EventSubscription unhandled_;
  bool has_listened_ = false;
};

// Has a router start and stop the actors of grains.
class GrainActivations final : public ActivationExecutor {
 public:
  GrainActivations() = default;
  explicit GrainActivations(ActorRef router) : router_(router) {}

  // Once, before the driver that has it is that of a member: until then nobody wants an activation.
  void set_router(ActorRef router) { router_ = router; }

  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) override;
  Future<void> StopActivation(GrainKey key, uint64_t token) override;

 private:
  ActorRef router_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_
