// CommandStash: the commands of an actor that have to wait until it has stored something, and those that it has put aside
// by itself.
//
//   if (is_busy_) { stash_.Wait(context); return absl::OkStatus(); }
//   ... later ...
//   stash_.ReturnNext(context);                       // one goes to the front of the mailbox
//   ... in Receive ...
//   const bool has_waited = stash_.TookBack(message);
//
// They come back one by one, since each may make the others wait again, and in the order in which they came.
//
// Limits are the owner's business: NoRoom says that it fails because of one. What is still there when a CommandStash
// ends is ended too.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_COMMAND_STASH_H_
#define FRAKTOR_PERSISTENCE_ACTOR_COMMAND_STASH_H_

#include <cstddef>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

class CommandStash {
 public:
  CommandStash() = default;
  CommandStash(const CommandStash&) = delete;
  CommandStash& operator=(const CommandStash&) = delete;
  ~CommandStash();

  size_t waiting() const { return waiting_size_; }
  size_t put_aside() const { return put_aside_size_; }

  // The message that is being handled goes behind those that wait; or before them, if it has waited already. Nothing
  // happens if it cannot be put aside.
  void Wait(ActorContext& context);
  void WaitAgain(ActorContext& context);

  // The message that is being handled is put aside until TakeBack. False if there is none, or it is put aside already.
  bool PutAside(ActorContext& context);
  // All that were put aside go before those that wait.
  void TakeBack();

  // The next of those that wait goes to the front of the mailbox, unless one is there.
  void ReturnNext(ActorContext& context);
  // Whether the message is the one that ReturnNext has put there. It is asked for each message, and once.
  bool TookBack(const Envelope& message) {
    if (&message != returned_) return false;
    returned_ = nullptr;
    return true;
  }

  // Of those that wait and those that were put aside, answers the ones that were asked with an ErrorReply; they are over
  // then, and the others stay. (Whether somebody on another node has asked cannot be seen: he gets one too.)
  void Refuse(ActorContext& context, const absl::Status& why);

  // The owner fails, since there is no room for the message that is being handled. Unless it goes on with another
  // message, those that wait are dead letters at GiveBack (kStashFull; who asked by one hears of it): whoever comes
  // next would find as many, and no room again. It is for the owner to say when it goes on.
  void NoRoom() { has_no_room_ = true; }
  void GoOn() { has_no_room_ = false; }

  // All go back to the front of the mailbox, in order: for whoever comes next, or to be dead letters.
  void GiveBack(ActorContext& context);

 private:
  actor_internal::EnvelopeList waiting_;
  actor_internal::EnvelopeList put_aside_;
  const Envelope* returned_ = nullptr;
  size_t waiting_size_ = 0;
  size_t put_aside_size_ = 0;
  bool has_no_room_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_COMMAND_STASH_H_
