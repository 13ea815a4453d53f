// A persistent actor on one node, its journal and its snapshots on another, over whatever transport the caller has:
// events are stored and handled once each while the link is cut and healed, large writes and large
// snapshots go in pieces, a recovery comes over the wire, a rival fences the writer, who then changes nothing, a journal that was restored
// from an old backup stops the writer, and errors keep their kinds.
//
//   CodecSetup codecs;
//   codecs.Add(RemoteJournalCodecs());                                     // for both systems
//   ...
//   RunRemoteJournalScenario({.writer = &a, .keeper = &b, .keeper_authority = "b@127.0.0.1:2552",
//                             .cut = ..., .heal = ..., .pass_time = ...});
//
// For tests only: what is not as it should be fails the test.
//
// Thread safety: the thread of the test; the systems may have threads.
#ifndef FRAKTOR_PERSISTENCE_TESTING_REMOTE_JOURNAL_SCENARIO_H_
#define FRAKTOR_PERSISTENCE_TESTING_REMOTE_JOURNAL_SCENARIO_H_

#include <functional>
#include <string>

#include "absl/time/time.h"

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"

namespace fraktor::inline v0 {

struct RemoteJournalNodes {
  // Where the persistent actor is, and where its journal is. Remoting has been started on both.
  ActorSystem* writer = nullptr;
  ActorSystem* keeper = nullptr;
  // How the writer names the keeper: "keeper@10.0.0.7:2552".
  std::string keeper_authority = {};

  // Nothing gets through in either direction; and all does again.
  std::function<void()> cut = nullptr;
  std::function<void()> heal = nullptr;
  // Only answers are lost. Null: the transport has no way to do so, and that part is left out.
  std::function<void()> cut_answers = nullptr;
  // Some frames are lost, come twice, or late. Null: as above.
  std::function<void()> disturb = nullptr;
  // Lets things happen, and so much time pass.
  std::function<void(absl::Duration duration)> pass_time = nullptr;

  // A write that is not answered for so long is sent again: longer than a round trip.
  absl::Duration write_timeout = absl::Seconds(1);
  // How long each step may take. Only a hang reaches it.
  absl::Duration patience = absl::Minutes(20);
};

// All that the two systems say to each other.
CodecSetup RemoteJournalCodecs();

void RunRemoteJournalScenario(const RemoteJournalNodes& nodes);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_REMOTE_JOURNAL_SCENARIO_H_
