// RemoteSnapshotStore: a local proxy for a snapshot store on another node. It understands
// snapshot_messages.h, passes small snapshots on as they are, and carries large ones in parts.
//
//   PropsPtr props = MakeProps<RemoteSnapshotStore>({}, far_store, writer_base, RemoteSnapshotOptions{});
//   ActorRef snapshots = system.SpawnSystemActor(*props, "remote-snapshots-main");
//   Tell(snapshots, SaveSnapshot{.snapshot = snapshot});      // of 16 MiB: 128 KiB per message
//
// PersistenceExtension starts one for each snapshot store that is added as an actor of another
// node.
//
// - A save above max_message_bytes is sent part by part: the first one alone until the store has
//   room for the upload, then parts_in_flight at a time. If no answer comes for resend_after, one
//   part is sent again, and then at growing intervals. A save without progress for `timeout` fails
//   (kUnavailable). The store forgets its parts then, unless they are complete already.
// - Requests that follow such a save of the same persistence id, other than loads, wait for its
//   end. So requests of one id take effect in the order in which they were made.
// - A load asks the store for an offer if the snapshot is large, and then for part after part. The
//   request is repeated at growing intervals until its result or offer arrives, and more seldom
//   after the store has confirmed it. The client receives one answer.
// - At most max_transfers are under way at once, others wait. Together they have at most
//   max_transfer_bytes in memory: further saves fail (kOverloaded), further loads wait at the store.
//
// Versions. A store on a node of an older version does not know parts. A load that is not confirmed
// within resend_after is asked again in both forms, also in the form that older nodes understand,
// and a warning is logged once. So actors with small snapshots recover from an older node. Large
// saves fail after `timeout`, and the error says so. Upgrade nodes with stores first.
//
// When the actor stops or is restarted, everything that is under way is answered with a failure.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_SNAPSHOT_STORE_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_SNAPSHOT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct RemoteSnapshotOptions {
  // The size of one message: a part, or a snapshot that goes as a whole. At least 1024. A frame of
  // the transport must hold it (WireLimits).
  size_t max_message_bytes = size_t{128} << 10;
  // Saves and loads in parts that are under way at once; each at least 1.
  size_t max_transfers = 4;
  size_t parts_in_flight = 4;
  // The bytes of all snapshots that are under way or wait. A larger snapshot travels alone.
  size_t max_transfer_bytes = size_t{256} << 20;
  // A transfer or load that hears nothing for this long sends or asks again, and then at growing
  // intervals. Longer than a round trip.
  absl::Duration resend_after = absl::Seconds(1);
  // A transfer that makes no progress for so long fails.
  absl::Duration timeout = absl::Seconds(15);

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class RemoteSnapshotStore final : public ActorInstance {
 public:
  // `sender` is a number that no other system has. It seeds the number that the actor draws for its
  // uploads.
  RemoteSnapshotStore(ActorRef store, uint64_t sender, const RemoteSnapshotOptions& options);

  absl::Status PreStart(ActorContext& context) override;
  absl::Status Receive(ActorContext& context, Envelope& message) override;
  void PostStop(ActorContext& context) override;

 private:
  using Request = std::variant<SaveSnapshot, DeleteSnapshot, DeleteSnapshots>;

  // The common part of uploads and downloads.
  struct Transfer {
    bool is_active = false;
    // Payload of one part.
    uint64_t part_bytes = 0;
    // Bytes before `done` are confirmed. Bytes before `begun` are sent or requested.
    uint64_t done = 0;
    uint64_t begun = 0;
    Instant last_progress;
    // The time of the last progress or repetition, and how long the next repetition waits.
    Instant last_message;
    absl::Duration resend_after;
    // The offset from which parts were last repeated without waiting for the timer.
    uint64_t repeated_at = std::numeric_limits<uint64_t>::max();
    // The last answer said that there is no room.
    bool is_refused = false;
  };
  struct Upload : Transfer {
    // The store has the first part. Others are not sent before.
    bool is_admitted = false;
    SaveSnapshot request;
    std::vector<Request> behind = {};
  };
  struct Download : Transfer {
    SnapshotOffer offer;
    ActorRef client;
    uint64_t instance_id = 0;
    std::string payload = {};
  };
  // A load without a result or an offer.
  struct Load {
    LoadSnapshot request;
    Instant asked_at;
    absl::Duration resend_after;
    // The time of the request, or of the last confirmation.
    Instant last_heard;
    bool is_confirmed = false;
  };

  void Handle(ActorContext& context, Request request);
  void Save(ActorContext& context, SaveSnapshot request);
  void StartLoad(ActorContext& context, LoadSnapshot& request);
  void OnTaken(ActorContext& context, const SnapshotPartsTaken& taken);
  void OnSaved(ActorContext& context, SnapshotPartsSaved& saved);
  void OnConfirmed(ActorContext& context, const LoadInPartsTaken& confirmed);
  void OnOffer(ActorContext& context, SnapshotOffer& offer);
  // Answers the client of the load. Further answers to the same load are dropped.
  template <class Answer>
  void PassOn(ActorContext& context, Answer& answer);
  void OnPart(ActorContext& context, SnapshotPart& part);
  void OnTick(ActorContext& context);

  // Starts as many transfers as may be under way.
  void StartTransfers(ActorContext& context);
  // Sends or requests at most `max_parts` parts, within the window of parts in flight.
  void GoOn(ActorContext& context, uint64_t number, Upload& upload, size_t max_parts);
  void GoOn(ActorContext& context, uint64_t number, Download& download, size_t max_parts);
  template <class T>
  void GoOn(ActorContext& context, uint64_t number, T& transfer) {
    GoOn(context, number, transfer, options_.parts_in_flight);
  }
  // `transfer` has made progress.
  void Progress(ActorContext& context, Transfer& transfer);
  // Repeats one part if the interval is over: a stalled link must not fill with repetitions.
  template <class T>
  void Probe(ActorContext& context, uint64_t number, T& transfer, Instant now);
  absl::Duration Longer(absl::Duration interval) const;
  // Takes the upload out, answers its client, and handles the requests behind it.
  void EndUpload(ActorContext& context, uint64_t number, const absl::Status& cause, SnapshotMetadata saved);
  void FailDownload(ActorContext& context, uint64_t number, const absl::Status& cause);
  void AskInParts(ActorContext& context, uint64_t number, const Load& load);
  void AskAgain(ActorContext& context);
  // A gap was reported. Resends from `done`, once per offset.
  template <class T>
  void Repeat(ActorContext& context, uint64_t number, T& transfer);
  // True: the transfer has made no progress for the timeout.
  bool IsLost(const Transfer& transfer, Instant now) const;
  absl::Status NoProgress(ActorContext& context, const Transfer& transfer, const SnapshotMetadata& metadata,
                          std::string_view what, uint64_t bytes) const;
  void StartTimer(ActorContext& context);

  const ActorRef store_;
  const uint64_t seed_;
  const RemoteSnapshotOptions options_;
  // Names the uploads of this incarnation, with a number.
  uint64_t sender_ = 0;
  uint64_t next_number_ = 0;
  // By number: in the order in which they came.
  std::map<uint64_t, Upload> uploads_;
  std::map<uint64_t, Download> downloads_;
  std::map<uint64_t, Load> loads_;
  // The upload of each id that has one.
  absl::flat_hash_map<std::string, uint64_t> upload_of_;
  size_t active_ = 0;
  // The bytes of uploads, of the saves behind them, and of downloads that are under way.
  size_t bytes_ = 0;
  bool has_timer_ = false;
  bool has_warned_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_SNAPSHOT_STORE_H_
