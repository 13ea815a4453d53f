// Orders that ask before they store: an order is a persistent grain, and what it orders from is a grain too, perhaps on
// another node. A Handle of a persistent actor does not wait. So it takes two commands: the first asks, and has the answer
// sent to its own actor; the second, which is that answer, stores what has come of it, and answers who has ordered.
//
// It may be that pieces are reserved and not bought: if the order ends in between, or what it stores is lost. Where that
// matters the question is stored too, and asked again until it is answered: see examples/persistence/transfer.cc.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

// What there is of an article.
struct Reserved {
  int64_t left = 0;
};
struct Reserve {
  using Reply = Reserved;
  int64_t pieces = 0;
};

class Stock : public fraktor::Actor<Stock, Reserve> {
 public:
  static constexpr std::string_view kGrainKind = "stock";
  explicit Stock(const fraktor::GrainContext&) {}

  absl::StatusOr<Reserved> On(Context&, const Reserve& reserve) {
    if (reserve.pieces > left_) {
      return absl::FailedPreconditionError("only " + std::to_string(left_) + " are left");
    }
    left_ -= reserve.pieces;
    return Reserved{left_};
  }

 private:
  int64_t left_ = 10;
};

// What somebody has ordered.
struct Ordered {
  int64_t pieces = 0;
};
struct Order {
  using Reply = Ordered;
  std::string article = {};
  int64_t pieces = 0;
};
struct GetOrdered {
  using Reply = Ordered;
};
// What the stock has said to an order. The actor tells it to itself. It has a codec all the same: if the grain moves while
// it waits, the answer comes to its next activation, which may be on another node. (So do all messages that travel, in a
// cluster of several processes: see counter_node.cc.)
struct Checked {
  using Reply = Ordered;
  int64_t pieces = 0;
  bool is_reserved = false;
  std::string why_not = {};
};
template <>
struct fraktor::Codec<Checked>
    : fraktor::FieldCodec<Checked, &Checked::pieces, &Checked::is_reserved, &Checked::why_not> {
  static constexpr std::string_view kManifest = "shop.checked";
};

struct Bought {
  int64_t pieces = 0;
};
template <>
struct fraktor::Codec<Bought> : fraktor::FieldCodec<Bought, &Bought::pieces> {
  static constexpr std::string_view kManifest = "shop.bought";
};

struct OrdersState {
  int64_t pieces = 0;
};

class Orders : public fraktor::EventSourced<Orders, OrdersState, fraktor::Commands<Order, Checked, GetOrdered>,
                                            fraktor::Events<Bought>> {
 public:
  static constexpr std::string_view kGrainKind = "orders";
  explicit Orders(const fraktor::GrainContext& grain) : id_("orders-" + std::string(grain.key.identity())) {}
  std::string PersistenceId() const override { return id_; }

  // Stores nothing and answers nobody yet. Further commands may come before the answer does: what they change is known
  // when it is there, so what depends on the state is decided then.
  Effect Handle(fraktor::ActorContext& context, const OrdersState&, const Order& order) {
    const auto stock = fraktor::Cluster::Of(context.system())->Grain<Stock>(order.article);
    // From who has ordered, so that he gets what the other Handle answers, and what goes wrong there.
    fraktor::PipeTo(context.system(), Check(stock.Ask(context, Reserve{order.pieces}, absl::Seconds(5)), order.pieces),
                    context.self(), context.sender());
    return Nothing();
  }
  ReplyEffect<Ordered> Handle(const OrdersState&, const Checked& checked) {
    if (!checked.is_reserved) return Reply(fraktor::ErrorReply{absl::FailedPreconditionError(checked.why_not)});
    return Persist(Bought{checked.pieces}).ThenReply([](const OrdersState& now) { return Ordered{now.pieces}; });
  }
  Ordered Handle(const OrdersState& state, const GetOrdered&) { return {state.pieces}; }

  void Apply(OrdersState& state, const Bought& event) { state.pieces += event.pieces; }

 private:
  // An error is an answer too.
  static fraktor::Future<Checked> Check(fraktor::Future<Reserved> asking, int64_t pieces) {
    return std::move(asking).MapResult([pieces](absl::StatusOr<Reserved> reserved) {
      return Checked{pieces, reserved.ok(), std::string(reserved.status().message())};
    });
  }

  const std::string id_;
};

int main() {
  // Two systems of one process, which share a journal, as they would a database.
  const std::unique_ptr<fraktor::StdToolbox> toolbox = fraktor::StdToolbox::Make({.name = "orders"}).value();
  const std::shared_ptr<fraktor::JournalStorage> journal = fraktor::MemoryJournal::Open({}).value();
  auto membership = std::make_shared<fraktor::MemoryMembership>(*toolbox);
  auto store = std::make_shared<fraktor::MemoryPlacementStore>(*toolbox);
  auto peers = std::make_shared<fraktor::LocalGrainPeers>();
  std::vector<std::unique_ptr<fraktor::ActorSystem>> systems;
  std::vector<fraktor::Cluster*> nodes;
  for (const std::string name : {"red", "green"}) {
    fraktor::ActorSystemOptions options{.config = {.system_name = name}, .toolbox = toolbox.get(), .workers = 1};
    options.codecs = fraktor::CodecSetup().Add<Bought, Checked>().Build().value();
    systems.push_back(fraktor::ActorSystem::Create(options).value());
    absl::Status added =
        systems.back()->Extension<fraktor::PersistenceExtension>().AddJournal("memory", {.storage = journal});
    absl::StatusOr<fraktor::Cluster*> node = fraktor::Cluster::Start(
        *systems.back(), {.authority = name + ":1",
                          .kinds = {fraktor::GrainKindOf<Stock>(), fraktor::GrainKindOf<Orders>()},
                          .membership = membership,
                          .lock = store,
                          .storage = store,
                          .peers = peers});
    if (!added.ok() || !node.ok()) {
      std::cerr << added << "; " << node.status() << "\n";
      return 1;
    }
    nodes.push_back(*node);
  }

  const auto order = [&](size_t from, std::string_view who, int64_t pieces) {
    const absl::StatusOr<Ordered> ordered =
        nodes[from]->Grain<Orders>(who).AskAndWait(*systems[from], Order{"tea", pieces}, absl::Seconds(30));
    std::cout << who << " orders " << pieces << ": ";
    if (ordered.ok()) {
      std::cout << "has " << ordered->pieces << "\n";
    } else {
      std::cout << ordered.status().message() << "\n";
    }
  };
  order(0, "alice", 4);
  order(1, "bob", 3);
  order(1, "alice", 2);
  order(0, "bob", 2);
  order(0, "bob", 1);

  // What was stored is there for the next activation; what was refused never was.
  for (fraktor::Cluster* node : nodes) node->Passivate(fraktor::GrainKey(Orders::kGrainKind, "bob"));
  const absl::StatusOr<Ordered> of_bob =
      nodes[0]->Grain<Orders>("bob").AskAndWait(*systems[0], GetOrdered{}, absl::Seconds(30));
  if (!of_bob.ok()) {
    std::cerr << of_bob.status() << "\n";
    return 1;
  }
  std::cout << "bob comes back, and has " << of_bob->pieces << "\n";
  return 0;
}
