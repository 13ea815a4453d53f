// The codecs of journal_messages.h, snapshot_messages.h and snapshot_parts.h, with which a journal
// or a snapshot store may be an actor of another node (RemoteStores).
//
//   CodecSetup codecs;
//   codecs.Add<Deposited, Withdrawn>().Add(ProtocolCodecs());               // on both nodes
//   FRAKTOR_ASSIGN_OR_RETURN(options.codecs, codecs.Build());
//
// Events travel as the bytes that are stored: the node with the journal needs no codecs of events.
// Errors keep their kind.
//
// Versions. A node with stores understands the requests of older nodes, and those understand its
// answers. An older node with stores drops requests that have an epoch: it could not fence former
// owners. So upgrade the nodes that have stores first. Until the others follow, the journal refuses
// their deletions for every id that was opened, and the snapshot store refuses their saves and
// deletions for every id whose owner it knows (kFenced). Nothing is lost then: the events stay.
//
// A node of an older version, with stores, does not know parts of snapshots either. Small snapshots
// can be saved and loaded there, large ones not (remote_snapshot_store.h).
//
// Messages must fit into a frame of the transport: see JournalSetup::max_message_bytes. A larger
// event is rejected when it is persisted. Large snapshots travel in parts.
//
// Thread safety: any thread.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_PROTOCOL_CODECS_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_PROTOCOL_CODECS_H_

#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor::inline v0 {

const CodecSetup& ProtocolCodecs();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_PROTOCOL_CODECS_H_
