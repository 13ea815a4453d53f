// A cluster under faults, with everything that a real one has but the disk: nodes crash and come
// back, join and leave, are cut off from each other and from the store, frames are lost, grains are
// passivated. The store crashes, or is another one from one moment to the next: either ends all
// leases at once, as a jump of its clock does, whatever their holders think. It is slow, so that
// leases end while what they were taken for is on its way, and loses requests and answers; so does
// the journal, to which writes of nodes that have died are still on their way. In some runs
// everything that is sent takes long. A seed decides everything.
//
// There are counters, which forget, and ledgers, which are persistent.
//
// Whenever something is stored: no record is of a token below one that somebody has got or stored
// before, and nothing is written to a journal by a token below one that has opened it. Every few
// hundred milliseconds: of the activations of a grain, one at most is on a node that is a member,
// as that node knows it, and the token under which a grain is served never goes back. In the end,
// without faults: every call was answered, with an answer or an error, and every grain answers from
// every node, from one activation. What a ledger has confirmed is in it, nothing is in it twice,
// tokens only grow, and what one node has asked an activation that ran to note is there in the
// order in which it asked.
//
// A quick run is of a few seeds. The long one: FRAKTOR_SIM_SEEDS=200
// bazel-bin/cluster/testing/cluster_sim_test --gtest_filter='*/0'. FRAKTOR_SIM_UNFENCED=1 switches
// fencing off: then it is red.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/cluster/testing/slow_journal.h"
#include "fraktor/cluster/testing/slow_line.h"
#include "fraktor/cluster/testing/slow_store.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/testing/forwarding_journal.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {

// Something that is noted once, by a node of this number.
struct Noted {
  int64_t nr = 0;
  int64_t by = 0;
  uint64_t token = 0;
};
struct Receipt {
  uint64_t token = 0;
};
struct Note {
  using Reply = Receipt;
  int64_t nr = 0;
  int64_t by = 0;
};
struct LedgerPage {
  std::vector<Noted> notes = {};
  uint64_t token = 0;
};
struct ReadLedger {
  using Reply = LedgerPage;
};

template <>
struct Codec<Noted> : FieldCodec<Noted, &Noted::nr, &Noted::by, &Noted::token> {
  static constexpr std::string_view kManifest = "test.noted";
};
template <>
struct Codec<Receipt> : FieldCodec<Receipt, &Receipt::token> {
  static constexpr std::string_view kManifest = "test.receipt";
};
template <>
struct Codec<Note> : FieldCodec<Note, &Note::nr, &Note::by> {
  static constexpr std::string_view kManifest = "test.note";
};
template <>
struct Codec<LedgerPage> : FieldCodec<LedgerPage, &LedgerPage::notes, &LedgerPage::token> {
  static constexpr std::string_view kManifest = "test.ledger_page";
};
template <>
struct Codec<ReadLedger> : FieldCodec<ReadLedger> {
  static constexpr std::string_view kManifest = "test.read_ledger";
};

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSeeds = 4;
#else
constexpr int kSeeds = 16;
#endif
constexpr int kParts = 4;

constexpr int kNodes = 5;
constexpr int kCounters = 200;
constexpr int kLedgers = 40;
// Most calls are for these: so much happens to them.
constexpr int kWantedCounters = 40;
constexpr int kWantedLedgers = 8;
constexpr int kSteps = 40;

struct LedgerState {
  std::vector<Noted> notes;
};

class Ledger final : public EventSourced<Ledger, LedgerState, Commands<Note, ReadLedger>, Events<Noted>> {
 public:
  static constexpr std::string_view kGrainKind = "ledger";
  explicit Ledger(const GrainContext& grain)
      : id_(absl::StrCat("ledger-", grain.key.identity())), token_(grain.token) {}
  std::string PersistenceId() const override { return id_; }

  ReplyEffect<Receipt> Handle(const LedgerState&, const Note& note) {
    return Persist(Noted{.nr = note.nr, .by = note.by, .token = token_}).ThenReply([this](const LedgerState&) {
      return Receipt{.token = token_};
    });
  }
  LedgerPage Handle(const LedgerState& state, const ReadLedger&) { return {.notes = state.notes, .token = token_}; }
  void Apply(LedgerState& state, const Noted& event) { state.notes.push_back(event); }

 private:
  const std::string id_;
  const uint64_t token_;
};

struct Calls {
  uint64_t asked = 0;
  uint64_t answered = 0;
  // Notes that ledgers have confirmed, and that they have in the end.
  uint64_t confirmed = 0;
  uint64_t noted = 0;
  // Writes of activations of the past.
  uint64_t refused = 0;
  // Nodes that others have taken for dead, and put into quarantine.
  uint64_t deaths = 0;
};

// The first thing that has happened and must not.
class Judge {
 public:
  void Expect(bool holds, absl::FunctionRef<std::string()> otherwise) {
    if (!holds && verdict_.empty()) verdict_ = otherwise();
  }
  bool has_verdict() const { return !verdict_.empty(); }
  const std::string& verdict() const { return verdict_; }

 private:
  std::string verdict_;
};

// The highest token of each grain that somebody has got, or that is in a record.
using Tokens = std::map<GrainKey, uint64_t>;

// Minds a record of a token below the last one.
class WatchedBackend final : public EmbeddedBackend {
 public:
  WatchedBackend(std::shared_ptr<Tokens> tokens, std::shared_ptr<Judge> judge)
      : tokens_(std::move(tokens)), judge_(std::move(judge)) {}

  absl::StatusOr<EmbeddedState> Load() override { return inner_.Load(); }
  absl::Status Write(const EmbeddedChanges& changes) override {
    for (const auto& change : changes.activations) {
      const GrainKey& key = change.first;
      if (!change.second.has_value()) continue;
      const uint64_t token = change.second->token;
      uint64_t& last = (*tokens_)[key];
      judge_->Expect(token >= last, [&] {
        return absl::StrCat(key.ToString(), " is stored by an activation of the past: ", token, " after ", last);
      });
      last = std::max(last, token);
    }
    return inner_.Write(changes);
  }

 private:
  TestBackend inner_;
  const std::shared_ptr<Tokens> tokens_;
  const std::shared_ptr<Judge> judge_;
};

// Sees which tokens nodes get.
class WatchedLock final : public PlacementLock {
 public:
  WatchedLock(std::shared_ptr<PlacementLock> inner, std::shared_ptr<Tokens> tokens)
      : inner_(std::move(inner)), tokens_(std::move(tokens)) {}

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override {
    return inner_->TryAcquire(key, std::move(owner), now).Map([tokens = tokens_, key](PlacementLease lease) {
      uint64_t& last = (*tokens)[key];
      last = std::max(last, lease.token);
      return lease;
    });
  }
  Future<void> Release(PlacementLease lease) override { return inner_->Release(std::move(lease)); }

 private:
  const std::shared_ptr<PlacementLock> inner_;
  const std::shared_ptr<Tokens> tokens_;
};

// Minds what is written with a token below one that has opened the journal. Without fencing it
// takes it all the same.
class WatchedJournal final : public ForwardingJournal {
 public:
  // Counts what it refuses.
  WatchedJournal(std::shared_ptr<Judge> judge, bool is_fenced, uint64_t* refused)
      : ForwardingJournal(MemoryJournal::Open({}).value()),
        judge_(std::move(judge)),
        is_fenced_(is_fenced),
        refused_(refused) {}

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override {
    judge_->Expect(token.has_value(), [&] { return absl::StrCat(persistence_id, " is opened without a token"); });
    const uint64_t given = token.value_or(0);
    uint64_t& last = opened_[persistence_id];
    last = std::max(last, given);
    if (is_fenced_) return journal()->OpenWriter(std::move(persistence_id), token);
    return journal()->OpenWriter(std::move(persistence_id), last).Map([given](WriterOpened opened) {
      opened.epoch = given;  // as it believes
      return opened;
    });
  }
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override {
    std::vector<uint64_t> epochs;
    for (AtomicWrite& write : writes) {
      epochs.push_back(write.epoch());
      if (!is_fenced_) write = WithLastEpoch(write);
    }
    // It answers at once.
    absl::StatusOr<WriteResults> results = journal()->Write(writes).Take();
    for (size_t i = 0; results.ok() && i < writes.size(); ++i) {
      const std::string& id = writes[i].persistence_id();
      if (!results->empty() && !(*results)[i].ok()) {
        if (epochs[i] < opened_[id]) ++*refused_;
        continue;
      }
      judge_->Expect(epochs[i] >= opened_[id], [&] {
        return absl::StrCat(id, " is written to by an activation of the past: ", epochs[i], " after ", opened_[id]);
      });
    }
    return MakeReadyFuture<WriteResults>(std::move(results));
  }

 private:
  AtomicWrite WithLastEpoch(const AtomicWrite& write) const {
    AtomicWrite::Events events;
    for (const PersistentRepr& event : write.events()) {
      events.push_back(event.WithEpoch(opened_.at(write.persistence_id())));
    }
    return AtomicWrite::Make(std::move(events)).value();
  }

  const std::shared_ptr<Judge> judge_;
  const bool is_fenced_;
  uint64_t* const refused_;
  // The highest token of each id.
  std::map<std::string, uint64_t> opened_;
};

struct Look {};

// Watches the routers of all nodes but its own, so that each hears how the others are, and takes
// those for dead that it does not hear.
class Sentry : public Actor<Sentry, Look, Terminated> {
 public:
  Sentry(int nodes, uint64_t* deaths) : nodes_(nodes), deaths_(deaths) {}
  absl::Status PreStart(Context& context) {
    return Timers(context).StartFixedDelay("look", Look{}, {.period = absl::Seconds(1)});
  }
  void On(Context& context, const Look&) {
    for (int i = 0; i < nodes_; ++i) {
      if (watched_.contains(i)) continue;
      const absl::StatusOr<ActorRef> router =
          context.system().Resolve(absl::StrCat("pekko://cluster@n", i, ".test:2552/system/grains"));
      if (router.ok() && router->IsRemote() && context.Watch(*router).ok()) watched_.emplace(i, *router);
    }
  }
  void On(Context&, const Terminated& ended) {
    if (ended.address_terminated) ++*deaths_;
    std::erase_if(watched_, [&ended](const auto& one) { return one.second == ended.actor; });
  }

 private:
  const int nodes_;
  uint64_t* const deaths_;
  std::map<int, ActorRef> watched_;
};

// FRAKTOR_SIM_UNFENCED=1: the seeds must be red.
bool IsFenced() { return std::getenv("FRAKTOR_SIM_UNFENCED") == nullptr; }

struct FaultOptions {
  bool has_store_trouble = true;
  bool has_ledgers = true;
  bool is_store_fenced = IsFenced();
  bool is_journal_fenced = IsFenced();
};

// One run under faults, and the calm after it.
class StormyCluster {
 public:
  StormyCluster(Simulation& sim, Calls& calls, const FaultOptions& faults)
      : sim_(sim),
        calls_(calls),
        faults_(faults),
        random_(sim.MakeRandom("faults")),
        store_random_(sim.MakeRandom("faults of the store")),
        ledger_random_(sim.MakeRandom("ledgers")),
        journal_(std::make_shared<WatchedJournal>(judge_, faults.is_journal_fenced, &calls.refused)),
        cluster_(sim, Options(), Network(random_.Bernoulli(0.3))) {
    cluster_.AddNodes(kNodes);
    for (int g = 0; g < kCounters; ++g) keys_.emplace_back("counter", absl::StrCat("g", g));
    for (int g = 0; g < kLedgers; ++g) keys_.emplace_back("ledger", absl::StrCat("l", g));
    tokens_.resize(keys_.size());
  }

  // What went wrong; nothing if nothing did.
  std::string Run() {
    for (int step = 0; step < kSteps && !judge_->has_verdict(); ++step) {
      Disturb();
      if (faults_.has_store_trouble) DisturbStore();
      CallCounters();
      if (faults_.has_ledgers) CallLedgers();
      for (int slice = 0; slice < 5; ++slice) {
        sim_.Advance(absl::Milliseconds(random_.UniformIn(20, 400)));
        Check();
      }
      Collect();
    }
    if (!judge_->has_verdict()) Calm();
    if (!judge_->has_verdict()) AskAllCounters();
    if (!judge_->has_verdict() && faults_.has_ledgers) AuditLedgers();
    if (!judge_->has_verdict()) Check();
    return judge_->verdict();
  }

 private:
  struct PendingNote {
    size_t ledger = 0;
    int64_t nr = 0;
    Future<Receipt> answer;
  };

  TestClusterOptions Options() {
    TestClusterOptions options = CounterCluster();
    options.kinds.push_back(GrainKindOf<Ledger>());
    options.codecs.Add<Noted, Receipt, Note, LedgerPage, ReadLedger>();
    options.store.backend = std::make_shared<WatchedBackend>(granted_, judge_);
    options.store.term = absl::Seconds(6);
    options.store.placement.lease_ttl = absl::Seconds(4);
    options.store.placement.is_unfenced_for_testing = !faults_.is_store_fenced;
    options.on_store = [this](ActorSystem& system, const TestStoreClients& store) {
      const auto slow =
          SlowStore::Make(system.toolbox(), sim_.MakeRandom("slow store").Fork(stores_.size()), store, trouble_);
      stores_.push_back(slow);
      return TestStore{
          .membership = store.of_node, .lock = std::make_shared<WatchedLock>(slow, granted_), .storage = slow};
    };
    // One that waits for less than a lease lasts tries again while its first try is on its way.
    if (faults_.has_store_trouble && store_random_.Bernoulli(0.5)) {
      options.cluster.placement.command_timeout = absl::Seconds(1);
    }
    options.on_system = [this](ActorSystem& system) {
      // The node of the store is no member, and nobody would end what it thinks of others.
      if (system.options().config.remoting->canonical_hostname == "store.test") return;
      system.Spawn<Sentry>("sentry", kNodes, &calls_.deaths);
      if (faults_.has_ledgers) AddJournal(system);
    };
    return options;
  }
  void AddJournal(ActorSystem& system) {
    journals_.push_back(SlowJournal::Make(system.toolbox(), sim_.MakeRandom("slow journal").Fork(journals_.size()),
                                          journal_, journal_trouble_));
    JournalSetup setup{.storage = journals_.back()};
    setup.options.max_writes_in_flight = 64;
    setup.options.breaker.call_timeout = absl::Seconds(3);
    setup.options.breaker.reset_timeout = absl::Seconds(2);
    const absl::Status added = system.Extension<PersistenceExtension>().AddJournal("main", setup);
    judge_->Expect(added.ok(), [&] { return added.ToString(); });
  }
  static SimNetworkOptions Network(bool is_slow) {
    return {.max_delay = is_slow ? absl::Milliseconds(150) : absl::Microseconds(500)};
  }

  void Disturb() {
    const size_t node = random_.UniformIn(0, kNodes - 1);
    const size_t other = random_.UniformIn(0, kNodes - 1);
    switch (random_.UniformIn(0, 13)) {
      case 0:
        if (dead_.size() < 2 && dead_.insert(node).second) cluster_.Crash(node);
        break;
      case 1:
      case 2:
        if (!dead_.empty()) {
          const size_t back = *dead_.begin();
          dead_.erase(back);
          cluster_.Restart(back);
        }
        break;
      case 3:
        if (node != other) cluster_.Cut(node, other);
        break;
      case 4:
        cluster_.CutFromStore(node);
        break;
      case 5:
      case 6:
        cluster_.Heal();
        break;
      case 7:
        if (is_store_dead_) {
          cluster_.RestartStore();
        } else {
          cluster_.CrashStore();
        }
        is_store_dead_ = !is_store_dead_;
        break;
      case 8:
        // Leaves, and comes back as another member.
        if (!dead_.contains(node) && dead_.size() < 2) {
          Future<void> leaving = cluster_[node].Leave();
          sim_.RunUntil([&] { return leaving.IsReady(); }, absl::Seconds(3));
          cluster_.Crash(node);
          dead_.insert(node);
        }
        break;
      case 12:
      case 13:
        if (!dead_.contains(node)) Passivate(node);
        break;
      case 9:
        cluster_.network().SetFaults(0.05, 0.05, 0.05);
        break;
      default:
        cluster_.network().SetFaults(0, 0, 0);
        break;
    }
  }

  void DisturbStore() {
    switch (store_random_.UniformIn(0, 9)) {
      case 0:
      case 1:
        *trouble_ = {.slow = store_random_.UniformDouble(), .max_delay = absl::Seconds(8), .lost = 0.1};
        // So that there is something to store.
        for (size_t i = 0; i < cluster_.size(); ++i) {
          if (!dead_.contains(i)) Passivate(i);
        }
        break;
      case 2:
      case 4:
      case 5:
        *trouble_ = {};
        break;
      case 3:
        if (!is_store_dead_) {
          cluster_.CrashStore();
          cluster_.RestartStore();
        }
        break;
      default:
        break;
    }
    if (!faults_.has_ledgers) return;
    switch (ledger_random_.UniformIn(0, 9)) {
      case 0:
      case 1:
        *journal_trouble_ = {.slow = 0.3, .max_delay = absl::Seconds(12), .lost = 0.03};
        break;
      case 2:
      case 3:
      case 4:
        *journal_trouble_ = {};
        break;
      case 5:
        RestartAWriter();
        break;
      default:
        break;
    }
  }

  // A node that writes is back before anybody has noticed, and its successor goes on before what it
  // has written is stored. All else is well meanwhile, or else there would be no successor in time.
  void RestartAWriter() {
    if (is_store_dead_) return;
    *trouble_ = {};
    *journal_trouble_ = {};
    cluster_.network().SetFaults(0, 0, 0);
    cluster_.Heal();
    const size_t ledger = ledger_random_.Uniform(kWantedLedgers);
    size_t from = ledger_random_.Uniform(kNodes);
    if (dead_.contains(from)) return;
    NoteTo(ledger, from);
    sim_.Advance(absl::Seconds(1));
    const std::optional<size_t> writer = HostOf(keys_[kCounters + ledger]);
    if (!writer.has_value()) return;
    while (from == *writer || dead_.contains(from)) from = (from + 1) % kNodes;
    *journal_trouble_ = {.slow = 1, .max_delay = absl::Seconds(12)};
    NoteTo(ledger, from);
    sim_.Advance(absl::Milliseconds(400));
    cluster_.Crash(*writer);
    cluster_.Restart(*writer);
    *journal_trouble_ = {};
    NoteTo(ledger, from);
  }

  void Passivate(size_t node) {
    for (size_t g = 0; g < kWantedCounters; ++g) cluster_[node].driver().Passivate(keys_[g]);
    if (!faults_.has_ledgers) return;
    for (size_t g = 0; g < kWantedLedgers; ++g) cluster_[node].driver().Passivate(keys_[kCounters + g]);
  }

  void CallCounters() {
    for (int call = 0; call < 8; ++call) {
      const size_t from = random_.UniformIn(0, kNodes - 1);
      if (dead_.contains(from)) continue;
      const std::string identity =
          absl::StrCat("g", random_.UniformIn(0, (random_.Bernoulli(0.7) ? kWantedCounters : kCounters) - 1));
      ++calls_.asked;
      pending_.push_back(cluster_[from].Grain<Counter>(identity).Ask(cluster_.system(from), Add{1}, absl::Seconds(5)));
    }
  }
  // Several in a row: they must stay in order.
  void CallLedgers() {
    for (int call = 0; call < 4; ++call) {
      const size_t from = ledger_random_.UniformIn(0, kNodes - 1);
      if (dead_.contains(from)) continue;
      const size_t ledger =
          ledger_random_.UniformIn(0, (ledger_random_.Bernoulli(0.8) ? kWantedLedgers : kLedgers) - 1);
      for (uint64_t i = ledger_random_.UniformIn(1, 4); i > 0; --i) NoteTo(ledger, from);
    }
  }
  void NoteTo(size_t ledger, size_t from) {
    ++calls_.asked;
    asked_of_[++last_note_] = TokenOf(keys_[kCounters + ledger]);
    const Note note{.nr = last_note_, .by = static_cast<int64_t>(from)};
    pending_notes_.push_back({.ledger = ledger,
                              .nr = last_note_,
                              .answer = cluster_[from]
                                            .Grain<Ledger>(absl::StrCat("l", ledger))
                                            .Ask(cluster_.system(from), note, absl::Seconds(5))});
  }

  // The node on which a grain runs.
  std::optional<size_t> HostOf(const GrainKey& key) {
    for (size_t node = 0; node < cluster_.size(); ++node) {
      if (!dead_.contains(node) && cluster_[node].driver().Local(key) != nullptr) return node;
    }
    return std::nullopt;
  }
  // Of the activation of a grain that runs; 0 if none does.
  uint64_t TokenOf(const GrainKey& key) {
    const std::optional<size_t> node = HostOf(key);
    return node.has_value() ? cluster_[*node].driver().Local(key)->token : 0;
  }

  void Collect() {
    std::erase_if(pending_, [this](Future<Count>& answer) {
      if (!answer.IsReady()) return false;
      if (answer.Take().ok()) ++calls_.answered;
      return true;
    });
    std::erase_if(pending_notes_, [this](PendingNote& note) {
      if (!note.answer.IsReady()) return false;
      if (note.answer.Take().ok()) {
        ++calls_.answered;
        ++calls_.confirmed;
        confirmed_[note.ledger].insert(note.nr);
      }
      return true;
    });
  }

  void Check() {
    std::vector<int> served(keys_.size());
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (dead_.contains(i)) continue;
      for (size_t g = 0; g < keys_.size(); ++g) {
        const PlacementResolutionPtr here = cluster_[i].driver().Local(keys_[g]);
        if (here == nullptr) continue;
        judge_->Expect(++served[g] == 1, [&] { return absl::StrCat(keys_[g].ToString(), " is served twice"); });
        judge_->Expect(here->token >= tokens_[g], [&] {
          return absl::StrCat(keys_[g].ToString(), " is served by an activation of the past: ", here->token, " after ",
                              tokens_[g]);
        });
        tokens_[g] = std::max(tokens_[g], here->token);
      }
    }
  }

  void Calm() {
    cluster_.network().SetFaults(0, 0, 0);
    *trouble_ = {};
    *journal_trouble_ = {};
    cluster_.Heal();
    if (is_store_dead_) cluster_.RestartStore();
    for (const size_t node : dead_) cluster_.Restart(node);
    dead_.clear();
    for (int slice = 0; slice < 150; ++slice) {
      sim_.Advance(absl::Milliseconds(200));
      Check();
    }
    Collect();
    judge_->Expect(pending_.empty() && pending_notes_.empty(), [&] {
      return absl::StrCat(pending_.size() + pending_notes_.size(), " calls have got no answer and no error");
    });
  }

  // The answers of all nodes to a question to one grain.
  template <class A, class Q>
  std::vector<typename Q::Reply> AskFromAll(const std::string& identity, const Q& question) {
    std::vector<typename Q::Reply> answers;
    std::set<uint64_t> tokens;
    for (size_t from = 0; from < cluster_.size(); ++from) {
      // Where a node has died behind a cut, and come back, one question is lost with the stream
      // that nobody knew to be dead, and one with the name of its former life.
      const absl::StatusOr<typename Q::Reply> answer =
          cluster_.AskUntilAnswered<A>(from, identity, question, /*attempts=*/3);
      judge_->Expect(answer.ok(), [&] {
        return absl::StrCat(identity, " does not answer node ", from, ": ", answer.status().ToString());
      });
      if (!answer.ok()) return answers;
      tokens.insert(answer->token);
      answers.push_back(*answer);
    }
    judge_->Expect(tokens.size() == 1, [&] { return absl::StrCat(identity, " answers from several activations"); });
    return answers;
  }

  void AskAllCounters() {
    for (int g = 0; g < kCounters && !judge_->has_verdict(); ++g) AskFromAll<Counter>(absl::StrCat("g", g), Add{1});
  }

  // What is read is what the journal has, and not what an activation remembers.
  void AuditLedgers() {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      for (size_t g = 0; g < kLedgers; ++g) cluster_[i].driver().Passivate(keys_[kCounters + g]);
    }
    sim_.Advance(absl::Seconds(5));
    for (size_t g = 0; g < kLedgers; ++g) {
      judge_->Expect(TokenOf(keys_[kCounters + g]) == 0, [&] { return absl::StrCat("l", g, " was not passivated"); });
    }
    for (size_t g = 0; g < kLedgers && !judge_->has_verdict(); ++g) {
      const std::string identity = absl::StrCat("l", g);
      const std::vector<LedgerPage> pages = AskFromAll<Ledger>(identity, ReadLedger{});
      if (!judge_->has_verdict()) AuditLedger(identity, confirmed_[g], pages.front());
    }
  }
  void AuditLedger(const std::string& identity, const std::set<int64_t>& confirmed, const LedgerPage& page) {
    std::set<int64_t> noted;
    uint64_t newest = 0;
    // Of each node and activation.
    std::map<std::pair<int64_t, uint64_t>, int64_t> last;
    for (const Noted& note : page.notes) {
      judge_->Expect(noted.insert(note.nr).second,
                     [&] { return absl::StrCat(identity, " has noted ", note.nr, " twice"); });
      judge_->Expect(note.token >= newest, [&] {
        return absl::StrCat(identity, " has a note of activation ", note.token, " after one of ", newest);
      });
      newest = std::max(newest, note.token);
      // One that was asked for elsewhere may come round later.
      if (asked_of_[note.nr] != note.token) continue;
      int64_t& before = last[{note.by, note.token}];
      judge_->Expect(note.nr > before, [&] {
        return absl::StrCat(identity, " has noted ", note.nr, " of node ", note.by, " after ", before);
      });
      before = note.nr;
    }
    for (const int64_t nr : confirmed) {
      judge_->Expect(noted.contains(nr),
                     [&] { return absl::StrCat(identity, " has confirmed ", nr, ", and lost it"); });
    }
    calls_.noted += noted.size();
  }

  Simulation& sim_;
  Calls& calls_;
  const FaultOptions faults_;
  Random random_;
  Random store_random_;
  Random ledger_random_;
  const std::shared_ptr<Judge> judge_ = std::make_shared<Judge>();
  const std::shared_ptr<StoreTrouble> trouble_ = std::make_shared<StoreTrouble>();
  const std::shared_ptr<StoreTrouble> journal_trouble_ = std::make_shared<StoreTrouble>();
  const std::shared_ptr<Tokens> granted_ = std::make_shared<Tokens>();
  const std::shared_ptr<WatchedJournal> journal_;
  // Of each life of a node, so that what it has sent arrives also after its death.
  std::vector<std::shared_ptr<SlowStore>> stores_;
  std::vector<std::shared_ptr<SlowJournal>> journals_;
  SimTestCluster cluster_;

  std::vector<GrainKey> keys_;
  std::vector<uint64_t> tokens_;  // under which each was served
  std::set<size_t> dead_;
  bool is_store_dead_ = false;
  std::vector<Future<Count>> pending_;
  std::vector<PendingNote> pending_notes_;
  int64_t last_note_ = 0;
  // Of each note the token of the activation that ran when it was asked for.
  std::map<int64_t, uint64_t> asked_of_;
  std::map<size_t, std::set<int64_t>> confirmed_;
};

void RunUnderFaults(Simulation& sim, Calls& calls, const FaultOptions& faults = {}) {
  StormyCluster cluster(sim, calls, faults);
  EXPECT_EQ(cluster.Run(), "");
}

// A part of the seeds, so that several processes can do it at a time.
class ClusterSimSeeds : public testing::TestWithParam<int> {};

// CLU-5, CLU-6, CLU-13, PER-19
TEST_P(ClusterSimSeeds, ServesEachGrainOnceWhateverHappens) {
  constexpr int kEach = kSeeds / kParts;
  Calls calls;
  // The first of them twice: it must be the same.
  const SimulateReport report =
      Simulate({.seeds = kEach, .first_seed = static_cast<uint64_t>(GetParam() * kEach + 1), .twice_every = 1000},
               [&](Simulation& sim) { RunUnderFaults(sim, calls); });
  std::printf(
      "%llu calls, %llu answered, %llu notes confirmed of %llu, %llu writes refused, %llu nodes taken for dead\n",
      static_cast<unsigned long long>(calls.asked), static_cast<unsigned long long>(calls.answered),
      static_cast<unsigned long long>(calls.confirmed), static_cast<unsigned long long>(calls.noted),
      static_cast<unsigned long long>(calls.refused), static_cast<unsigned long long>(calls.deaths));
  EXPECT_GT(calls.answered, 0u);
  // Of a single seed the store may be in trouble most of the time.
  if (report.hashes.size() < 4) return;
  EXPECT_GT(calls.answered, calls.asked / 10) << "the test is worth something only if calls get through";
  EXPECT_GT(calls.deaths, 0u) << "and if nodes are taken for dead";
  EXPECT_GT(calls.confirmed, 0u) << "and if ledgers confirm";
  EXPECT_GT(calls.noted, calls.confirmed) << "and if some do not get to say so";
}

// Those that were red once.
TEST(ClusterSim, KeptSeeds) {
  Calls calls;
  // A node dies behind a cut: see AskFromAll.
  Simulate({.seeds = 1, .first_seed = 93, .twice = false},
           [&](Simulation& sim) { RunUnderFaults(sim, calls, {.has_store_trouble = false, .has_ledgers = false}); });
}

INSTANTIATE_TEST_SUITE_P(ClusterSim, ClusterSimSeeds, testing::Range(0, kParts));

// Returns the verdict of a seed that finds the broken fence. Few seeds do, and a change of the
// runtime changes the schedule of all of them. So `known_seed` goes first, which found it the last
// time; if it does not any more, the others follow, and the output names the seed to write here.
std::string VerdictOf(uint64_t known_seed, const FaultOptions& faults) {
  constexpr uint64_t kMostSeeds = 32;
  std::string verdict;
  uint64_t seed = known_seed;
  for (uint64_t next = 1; verdict.empty() && next <= kMostSeeds; ++next) {
    Calls calls;
    Simulation sim({.seed = seed});
    StormyCluster cluster(sim, calls, faults);
    verdict = cluster.Run();
    if (verdict.empty()) seed = next;
  }
  std::printf("without fencing: seed %llu, %s\n", static_cast<unsigned long long>(seed), verdict.c_str());
  return verdict;
}

// CLU-6
TEST(ClusterSim, IsRedWithoutFencingOfRecords) {
  EXPECT_THAT(VerdictOf(16, {.is_store_fenced = false}), testing::HasSubstr("is stored by an activation of the past"));
}

// CLU-6, PER-19
TEST(ClusterSim, IsRedWithoutFencingOfJournals) {
  EXPECT_THAT(VerdictOf(6, {.is_journal_fenced = false}),
              testing::HasSubstr("is written to by an activation of the past"));
}

}  // namespace
}  // namespace fraktor
