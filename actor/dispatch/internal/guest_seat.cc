#include "fraktor/actor/dispatch/internal/guest_seat.h"

#include <utility>

#include "fraktor/actor/send/internal/actor_worker.h"

namespace fraktor::inline v0::actor_internal {

bool GuestSeat::TryTake() {
  if (!mutex_.TryLock()) return false;
  if (host_ == nullptr || !host_->HasSleepers()) {
    mutex_.Unlock();
    return false;
  }
  is_taken_.store(true, std::memory_order_seq_cst);
  return true;
}

void GuestSeat::Leave() {
  is_taken_.store(false, std::memory_order_seq_cst);
  host_->OnGuestLeaves();
  mutex_.Unlock();
}

void GuestSeat::Close() {
  MutexLock lock(mutex_);
  host_ = nullptr;
}

GuestStay::GuestStay(std::shared_ptr<GuestSeat> seat)
    : seat_(std::move(seat)),
      is_guest_(seat_ != nullptr && ActorWorker::Current() == nullptr && ReadyKeeper::OfThisThread() == nullptr &&
                seat_->TryTake()) {
  if (is_guest_) ReadyKeeper::SetOfThisThread(this);
}

GuestStay::~GuestStay() {
  if (!is_guest_) return;
  // From here on the actors that these ones schedule go to the workers.
  ReadyKeeper::SetOfThisThread(nullptr);
  if (count_ > 0) seat_->Run(absl::MakeConstSpan(kept_.data(), count_));
  seat_->Leave();
}

bool GuestStay::Keep(ActorSlot& slot) {
  if (slot.dispatcher != seat_->dispatcher_ || count_ == kMostKept) return false;
  kept_[count_++] = &slot;
  return true;
}

}  // namespace fraktor::inline v0::actor_internal
