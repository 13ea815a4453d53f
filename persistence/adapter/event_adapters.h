// EventAdapters: which adapters a journal's events go through.
//
//   EventAdapters adapters;
//   adapters.Add("money", ReadWriteAdapter<Deposited, StoredDeposit>(...));
//   adapters.Add("tags", TagEvents({"account"}));
//   adapters.Bind<Deposited, StoredDeposit>({"money"});       // as the actor has it, and as the journal has it
//   adapters.BindOthers({"tags"});                            // all that no other binding names
//   FRAKTOR_ASSIGN_OR_RETURN(std::shared_ptr<const EventCodec> codec, adapters.Build(system));
//   persistence.AddJournal("main", {.storage = journal, .codec = codec});
//
// An event is adapted by the adapter of its own type; without one by that of the most specific of its bases that has one,
// as far as bases are declared (Declare); without that by that of BindOthers; otherwise it is left as it is.
// Of several adapters for one type, each gets what is read, and all that they make of it comes in their order. They must
// be such that only read, since an event can be stored in one form only: one adapter that gives it another form may give
// it tags too (AdaptedEvent::WithTags).
//
// Snapshots are not adapted.
//
// Thread safety: a value while it is set up; what Build makes is a constant.
#ifndef FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTERS_H_
#define FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTERS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/adapter/event_adapter.h"

namespace fraktor::inline v0 {

class EventAdapters {
 public:
  // One that has the name is replaced.
  EventAdapters& Add(std::string name, std::shared_ptr<const EventAdapter> adapter);

  template <class... Es>
  EventAdapters& Bind(std::vector<std::string> names) {
    (bindings_.push_back({MessageTypeOf<Es>(), names}), ...);
    return *this;
  }
  // Each of `Kinds` is a `Base`, as if it were derived from it: a binding of Base is for them too, unless there is one for
  // what is between them. Of several bases that have nothing to do with each other, the one declared first counts.
  //
  //   adapters.Declare<MoneyMoved, Deposited, Withdrawn>().Bind<MoneyMoved>({"money"});
  template <class Base, class... Kinds>
  EventAdapters& Declare() {
    (bases_.push_back({MessageTypeOf<Kinds>(), MessageTypeOf<Base>()}), ...);
    return *this;
  }
  EventAdapters& BindOthers(std::vector<std::string> names) {
    bindings_.push_back({nullptr, std::move(names)});
    return *this;
  }

  // A codec that adapts, and then uses the codecs of the system, which must outlive it. InvalidArgument: a binding to a
  // name that there is not (it names the type, the name, and the names that there are), to no name, to several
  // of which one writes, or of a type that has one; a type that is declared as its own base.
  absl::StatusOr<std::shared_ptr<const EventCodec>> Build(const ActorSystem& system) const;

 private:
  struct Binding {
    const MessageType* type;  // Null: all others.
    std::vector<std::string> names;
  };

  struct DeclaredBase {
    const MessageType* type;
    const MessageType* base;
  };

  // All bases of a type, near and far, each once.
  std::vector<const MessageType*> BasesOf(const MessageType* type) const;

  std::map<std::string, std::shared_ptr<const EventAdapter>> adapters_;
  std::vector<DeclaredBase> bases_;
  std::vector<Binding> bindings_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTERS_H_
