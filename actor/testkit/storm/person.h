// Person: what every actor of a storm does with its messages, whether its class is typed or not.
//
// A Person is a member of the actor object, whose hooks and handlers call those of the Person. So
// it is made again at each restart. The state of the actor's whole life is in its Life. Every entry
// checks that no other thread is inside.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_PERSON_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_PERSON_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/pattern/receptionist.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/machine.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/operation_table.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {

// Where the rows of actors begin in World::CountOperation. Row 0 is for no operation.
inline constexpr size_t kFirstActorRow = 1;

// The services of a storm have the names "0", "1" and so on.
inline constexpr int kServices = 3;
using ServiceOfStorm = ServiceKey<Letter>;
using Services = Listing<Letter>;

// Changes how an actor handles messages; each class of actors does that in its own way.
class Moods {
 public:
  enum class Change : uint8_t { kBecome, kBecomeStacked, kUnbecome };
  virtual void ChangeMood(ActorContext& context, Change change) = 0;

 protected:
  ~Moods() = default;
};

class Person {
 public:
  // Throws now and then, as constructors do.
  Person(Moods& moods, const std::shared_ptr<Life>& life);
  Person(const Person&) = delete;
  Person& operator=(const Person&) = delete;
  ~Person();

  // The hooks and handlers of the actor.
  absl::Status PreStart(ActorContext& context);
  void PostStop(ActorContext& context);
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason);
  SupervisionDirective OnChildFailure(const Failure& failure);
  const SupervisorStrategy& supervision() const;

  // One message, of any type.
  absl::Status Receive(ActorContext& context, Envelope& message);
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer);

  absl::Status On(ActorContext& context, Letter& letter) { return OnMail(context, letter, "letter"); }
  absl::Status On(ActorContext& context, Bulky& bulky) { return OnMail(context, bulky, "bulky letter"); }
  absl::Status On(ActorContext& context, Urgent& urgent);
  absl::Status On(ActorContext& context, Act& act);
  absl::Status On(ActorContext& context, Question& question);
  absl::Status On(ActorContext& context, Answer&);
  absl::Status On(ActorContext& context, Tick& tick);
  absl::Status On(ActorContext& context, Piped& piped);
  absl::Status On(ActorContext& context, const WatchNote& note);
  absl::Status On(ActorContext& context, const Gust&);
  absl::Status On(ActorContext& context, const Services& services);
  absl::Status On(ActorContext& context, const MachineState& machine);
  absl::Status On(ActorContext& context, const MachineMove& move);
  absl::Status On(ActorContext& context, const Calm&);
  absl::Status On(ActorContext& context, const Audit&);
  absl::Status On(ActorContext& context, const Terminated& terminated);
  absl::Status On(ActorContext& context, const ReceiveTimeout&);
  absl::Status On(ActorContext& context, const ActorIdentity&);
  absl::Status On(ActorContext& context, const ErrorReply&);

  // An ask has arrived. For handlers that return the reply.
  void CheckQuestion(Question& question);
  // Checks that the target of every open watch lives. Call it when all is quiet.
  void CheckWaits(ActorContext& context);

  // ActorContext::StopChildren ends the watches of children.
  void ForgetChildren(ActorContext& context);

  World& world() { return life_->world; }
  Life& life() { return *life_; }
  Moods& moods() { return moods_; }
  // Futures that the actor keeps, to drop them later.
  std::vector<Future<Answer>>& kept() { return kept_; }

  // Checks that only one thread is inside the actor, for as long as it lives.
  class Inside {
   public:
    explicit Inside(Person& person);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Person& person_;
    // A coroutine that does not have to wait runs inside the handler that began it.
    const uint64_t outer_;
  };

 private:
  template <class Mail>
  absl::Status OnMail(ActorContext& context, Mail& mail, std::string_view what);
  // Replies that this actor owes go out with the next message.
  void PayReplies(ActorContext& context);
  // Whether the message was stashed.
  bool MayStash(ActorContext& context);

  Moods& moods_;
  const std::shared_ptr<Life> life_;
  const Counted counted_;
  std::vector<Future<Answer>> kept_;
  // The thread that is inside, or 0. Relaxed: the runtime orders the turns of an actor, and this
  // check must not add an order of its own, which would hide a race from ThreadSanitizer.
  std::atomic<uint64_t> inside_{0};
  // Written in every turn without any protection: ThreadSanitizer reports turns that are not
  // ordered.
  int64_t turns_ = 0;
};

// The circuit breaker of a system.
struct Breaker {
  explicit Breaker(ActorSystem& system);
  const std::unique_ptr<CircuitBreaker> breaker;
};

// An operation that an actor performs in its turn.
struct Deed {
  Person& person;
  ActorContext& context;
  Random& random;

  World& world() { return person.world(); }
  Acquaintance Anybody() { return world().Anybody(random); }
};

struct ActorOperation {
  std::string_view name;
  int weight;
  absl::Status (*perform)(Deed& deed);
};
// The rows of all classes of operations, in one table.
const OperationTable<ActorOperation>& ActorOperations();

// The classes.
std::vector<ActorOperation> MessagingOperations();
std::vector<ActorOperation> LifeOperations();
std::vector<ActorOperation> AskingOperations();
std::vector<ActorOperation> FacilityOperations();
std::vector<ActorOperation> LookingOperations();
std::vector<ActorOperation> RouterOperations();
std::vector<ActorOperation> PatternOperations();

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_PERSON_H_
