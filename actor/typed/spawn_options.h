// SpawnOptions: mailbox, dispatcher and supervision of one actor, between its name and its
// arguments.
//
//   auto sink = context.Spawn<Sink>("sink", {.dispatcher = DispatcherChoice::kPinned, .mailbox = {.capacity = 9}});
//
// Thread safety: a value.
#ifndef FRAKTOR_ACTOR_TYPED_SPAWN_OPTIONS_H_
#define FRAKTOR_ACTOR_TYPED_SPAWN_OPTIONS_H_

#include <optional>

#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"

namespace fraktor::inline v0 {

struct SpawnOptions {
  // A DispatcherChoice, or the name of a pool of ActorSystemOptions::dispatchers (dispatchers.h).
  // Children of the actor run on the default pool, unless their own options say otherwise.
  DispatcherSelector dispatcher = {};
  MailboxOptions mailbox = {};
  // How the actor supervises its children, instead of Supervision() of its class. The recipe of the
  // actor keeps a copy.
  std::optional<SupervisorStrategy> supervision = std::nullopt;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_SPAWN_OPTIONS_H_
