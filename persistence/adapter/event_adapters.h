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
// An event is adapted by the adapter of its own type; without one by that of BindOthers; without that it is left as it is.
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
  EventAdapters& BindOthers(std::vector<std::string> names) {
    bindings_.push_back({nullptr, std::move(names)});
    return *this;
  }

  // A codec that adapts, and then uses the codecs of the system, which must outlive it. InvalidArgument: a binding to a
  // name that there is not (it names the type, the name, and the names that there are), to no name, to several
  // of which one writes, or of a type that has one.
  absl::StatusOr<std::shared_ptr<const EventCodec>> Build(const ActorSystem& system) const;

 private:
  struct Binding {
    const MessageType* type;  // Null: all others.
    std::vector<std::string> names;
  };

  std::map<std::string, std::shared_ptr<const EventAdapter>> adapters_;
  std::vector<Binding> bindings_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTERS_H_
