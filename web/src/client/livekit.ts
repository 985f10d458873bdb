import {
  ConnectionError,
  ConnectionErrorReason,
  DisconnectReason,
  LocalAudioTrack,
  LogLevel,
  Room,
  RoomEvent,
  RpcError,
  setLogLevel,
  Track,
  type LocalTrack,
  type LocalTrackPublication,
  type RemoteParticipant,
  type RemoteTrack,
  type TextStreamReader,
} from 'livekit-client';
import { readFollow, RoomError, type JoinRoom, type JoinedRoom, type Left, type RoomAgent, type RoomEvents } from './room';

/** The most that one text stream may hold, in bytes: far more than an answer has. */
const longestText = 1 << 20;

/** How long joining may take, in ms. */
const joinsWithin = 10_000;

setLogLevel(LogLevel.silent); // it writes addresses with tokens in them

/** Joins a room of LiveKit. This file is the only one that knows livekit-client. */
export const joinLiveKit: JoinRoom = async ({ url, token }, events) => {
  // The microphone is not the room's: it stays open across rooms.
  const room = new Room({ dataStream: { maxPayloadByteLength: longestText }, stopLocalTrackOnUnpublish: false });
  const joined = new Joined(room, events);
  try {
    await room.connect(url, token, { maxRetries: 1, peerConnectionTimeout: joinsWithin, websocketTimeout: joinsWithin });
  } catch (error) {
    await room.disconnect().catch(() => {});
    throw new RoomError(whyNot(error));
  }
  joined.begin();
  return joined;
};

function whyNot(error: unknown): Left {
  return error instanceof ConnectionError && error.reason === ConnectionErrorReason.NotAllowed ? 'refused' : 'unreachable';
}

const whys: Partial<Record<DisconnectReason, Left>> = {
  [DisconnectReason.DUPLICATE_IDENTITY]: 'elsewhere',
  [DisconnectReason.PARTICIPANT_REMOVED]: 'removed',
  [DisconnectReason.ROOM_DELETED]: 'closed',
  [DisconnectReason.ROOM_CLOSED]: 'closed',
};

class Joined implements JoinedRoom {
  #room: Room;
  #events: RoomEvents;
  #begun = false; // before that nothing is told
  #left = false;
  #speaks = true;
  #sounds = new Map<string, HTMLMediaElement>(); // of agents, by the track's SID
  #microphone: LocalTrackPublication | undefined;

  constructor(room: Room, events: RoomEvents) {
    this.#room = room;
    this.#events = events;
    const tellAgent = (): void => {
      if (this.#begun && !this.#left) events.onAgent(this.agent);
    };
    room
      .on(RoomEvent.ParticipantConnected, tellAgent)
      .on(RoomEvent.ParticipantDisconnected, tellAgent)
      .on(RoomEvent.ParticipantAttributesChanged, tellAgent)
      .on(RoomEvent.DataReceived, (packet, from, _kind, topic) => events.onData(topic ?? '', from?.identity ?? '', packet))
      .on(RoomEvent.TrackSubscribed, (track, publication, from) => this.#sounding(track, publication.trackSid, from))
      .on(RoomEvent.TrackUnsubscribed, (track, publication) => this.#silent(track, publication.trackSid))
      .on(RoomEvent.Reconnecting, () => events.onReconnecting())
      .on(RoomEvent.Reconnected, () => events.onReconnected())
      .on(RoomEvent.Disconnected, (reason) => this.#disconnected(reason));
    room.registerTextStreamHandler('lk.transcription', (reader, { identity }) => void this.#read(reader, identity));
  }

  begin(): void {
    this.#begun = true;
  }

  get agent(): RoomAgent | null {
    const agent = [...this.#room.remoteParticipants.values()].find((p) => p.isAgent);
    if (!agent) return null;
    const { 'lk.agent.state': state = '', 'vela.turn_detection': detection = null, 'vela.follow': follow } = agent.attributes;
    return { identity: agent.identity, state, detection, follow: readFollow(follow) };
  }

  async chat(text: string): Promise<void> {
    await this.#room.localParticipant.sendText(text, { topic: 'lk.chat' });
  }

  send(topic: string, packet: Uint8Array<ArrayBuffer>): Promise<void> {
    return this.#room.localParticipant.publishData(packet, { topic, reliable: true });
  }

  async call(identity: string, method: string, payload: string): Promise<string> {
    try {
      return await this.#room.localParticipant.performRpc({ destinationIdentity: identity, method, payload });
    } catch (error) {
      throw error instanceof RpcError ? { data: error.data, message: error.message } : error;
    }
  }

  async publish(microphone: MediaStreamTrack | null): Promise<void> {
    const { localParticipant } = this.#room;
    const before = this.#microphone?.track;
    this.#microphone = undefined;
    if (before) await localParticipant.unpublishTrack(before, false);
    if (!microphone) return;
    // Muted before it is published: what is open is heard, and silences the agent.
    const track = new LocalAudioTrack(microphone, undefined, true);
    await track.mute();
    const itself = track as unknown as LocalTrack; // which it is, but for exactOptionalPropertyTypes
    this.#microphone = await localParticipant.publishTrack(itself, { source: Track.Source.Microphone });
  }

  mute(muted: boolean): void {
    const publication = this.#microphone;
    // A room that is being left tells so itself.
    void (muted ? publication?.mute() : publication?.unmute())?.catch(() => {});
  }

  speak(on: boolean): void {
    this.#speaks = on;
    for (const element of this.#sounds.values()) element.muted = !on;
    if (on) void this.#room.startAudio().catch(() => {});
  }

  leave(): void {
    this.#left = true;
    void this.#room.disconnect(false).catch(() => {});
    for (const element of this.#sounds.values()) element.remove();
    this.#sounds.clear();
  }

  #disconnected(reason: DisconnectReason | undefined): void {
    if (this.#left || !this.#begun) return;
    this.#left = true;
    this.#events.onLeft(whys[reason ?? DisconnectReason.UNKNOWN_REASON] ?? 'lost');
  }

  /** Everybody else in the room is heard, the agent as long as it is wanted. */
  #sounding(track: RemoteTrack, sid: string, from: RemoteParticipant): void {
    if (track.kind !== Track.Kind.Audio) return;
    const element = track.attach();
    element.muted = from.isAgent && !this.#speaks;
    document.body.append(element);
    if (from.isAgent) this.#sounds.set(sid, element);
  }

  #silent(track: RemoteTrack, sid: string): void {
    for (const element of track.detach()) element.remove();
    this.#sounds.delete(sid);
  }

  async #read(reader: TextStreamReader, identity: string): Promise<void> {
    const { id, attributes } = reader.info;
    const name = this.#room.getParticipantByIdentity(identity)?.name ?? '';
    const piece = { stream: id, segment: attributes?.['lk.segment_id'] || id, from: { identity, name } };
    const final = (): boolean => reader.info.attributes?.['lk.transcription_final']?.toLowerCase() === 'true';
    try {
      for await (const text of reader) this.#events.onTranscription({ ...piece, text, end: false, final: final() });
    } catch {
      // What has come of it stays.
    }
    this.#events.onTranscription({ ...piece, text: '', end: true, final: final() });
  }
}
