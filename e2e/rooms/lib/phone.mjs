// A phone in a room: LiveKit's own client for Node, with what it heard, read and was shown.
import { readFileSync } from 'node:fs';
import { AudioFrame, AudioSource, AudioStream, LocalAudioTrack, ParticipantKind, Room, RoomEvent, TrackKind, TrackPublishOptions, TrackSource } from '@livekit/rtc-node';
import { LocalTrackMuteRequest } from '@livekit/rtc-ffi-bindings';

const rate = 16000;

/** Asks the gateway for a token, as LiveKit's clients do at a standard token endpoint. */
export async function ticket(vela, room, identity, more = {}) {
  const answer = await fetch(`${vela.url}/api/livekit/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ room_name: room, participant_identity: identity, ...more }),
  });
  if (answer.status !== 201) throw new Error(`token: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** Joins a room with a token of the gateway's. The microphone is published muted. */
export async function joinRoom(vela, name, identity) {
  const { server_url, participant_token } = await ticket(vela, name, identity);
  return join(server_url, participant_token);
}

export async function join(url, token) {
  const room = new Room();
  const phone = {
    room,
    said: [], // transcriptions, a row for each stream: {segment, track, from, text, final, ended}
    events: [], // objects of ganglia-events, joined
    packets: [], // of ganglia-events, as they came
    vela: [], // events of vela-events
    order: [], // what came, in order, in a word
    sound: { samples: 0, loud: 0, last: 0 }, // of the agent
    gone: null,
    failures: [],
  };
  const transfers = new Map();
  room.registerTextStreamHandler('lk.transcription', async (reader, { identity }) => {
    const { attributes } = reader.info;
    const row = {
      segment: attributes['lk.segment_id'], track: attributes['lk.transcribed_track_id'], from: identity,
      final: attributes['lk.transcription_final'] === 'true', text: '', ended: false,
    };
    phone.said.push(row);
    phone.order.push(`said:${row.segment}`);
    try {
      for await (const more of reader) row.text += more;
      row.ended = true;
    } catch (error) {
      phone.failures.push(error);
    }
  });
  room.on(RoomEvent.DataReceived, (payload, participant, _kind, topic) => {
    if (participant?.kind !== ParticipantKind.AGENT) return;
    const text = new TextDecoder().decode(payload);
    if (topic === 'vela-events') phone.vela.push(JSON.parse(text));
    if (topic !== 'ganglia-events') return;
    phone.packets.push(payload.length);
    const packet = JSON.parse(text);
    if (packet.type !== 'chunk') return shown(packet);
    // A reader that decodes each piece by itself; another one, which joins first, must read the same.
    const pieces = transfers.get(packet.transfer_id) ?? new Array(packet.total_chunks).fill(null);
    transfers.set(packet.transfer_id, pieces);
    pieces[packet.chunk_index] = packet.data;
    if (pieces.some((piece) => piece === null)) return;
    transfers.delete(packet.transfer_id);
    const apart = Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString();
    const joined = Buffer.from(pieces.join(''), 'base64').toString();
    if (apart !== joined) phone.failures.push(new Error('the two ways to read chunks differ'));
    shown(JSON.parse(joined));
  });
  function shown(object) {
    phone.events.push(object);
    phone.order.push(`${object.type}:${object.action ?? object.artifact_type ?? ''}`);
  }
  room.on(RoomEvent.TrackSubscribed, async (track) => {
    if (track.kind !== TrackKind.KIND_AUDIO) return;
    let stream;
    try {
      stream = new AudioStream(track, 24000, 1);
    } catch {
      return; // rtc-node announces tracks that it has let go of already, when a server comes back
    }
    for await (const frame of stream) {
      phone.sound.samples += frame.data.length;
      if (frame.data.some((s) => Math.abs(s) > 500)) {
        phone.sound.loud += frame.data.length;
        phone.sound.last = Date.now();
      }
    }
  });
  room.on(RoomEvent.Disconnected, (reason) => (phone.gone = reason ?? 'gone'));
  await room.connect(url, token, { autoSubscribe: true, dynacast: false });

  const source = new AudioSource(rate, 1, 60_000);
  const track = LocalAudioTrack.createAudioTrack('microphone', source);
  const publication = await room.localParticipant.publishTrack(track, new TrackPublishOptions({ source: TrackSource.SOURCE_MICROPHONE }));
  const mute = (on) => globalThis._ffiClientInstance.request({
    message: { case: 'localTrackMute', value: new LocalTrackMuteRequest({ trackHandle: track.ffi_handle.handle, mute: on }) },
  });
  mute(true);

  return Object.assign(phone, {
    identity: room.localParticipant.identity,
    sid: publication.sid,
    agents: () => [...room.remoteParticipants.values()].filter((p) => p.kind === ParticipantKind.AGENT),
    agent: () => phone.agents()[0],
    state: () => phone.agent()?.attributes['lk.agent.state'],
    mute,
    /** Says what a WAV file has: unmutes, speaks at the speed of speech, and mutes. */
    async say(file, { release = true } = {}) {
      mute(false);
      const wav = readFileSync(file);
      const bytes = wav.subarray(wav.indexOf('data') + 8);
      const samples = new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~1)));
      for (let at = 0; at < samples.length; at += rate / 50) {
        const piece = samples.slice(at, at + rate / 50);
        await source.captureFrame(new AudioFrame(piece, rate, 1, piece.length));
      }
      await source.waitForPlayout();
      if (release) mute(true);
    },
    write: (text) => room.localParticipant.sendText(text, { topic: 'lk.chat' }),
    send: (object) => room.localParticipant.publishData(new TextEncoder().encode(JSON.stringify(object)), { reliable: true, topic: 'ganglia-events' }),
    call: (method, payload = {}) => room.localParticipant.performRpc({ destinationIdentity: phone.agent().identity, method, payload: JSON.stringify(payload), responseTimeout: 10_000 }),
    agentSaid: () => phone.said.filter((row) => row.from.startsWith('agent-')),
    userSaid: () => phone.said.filter((row) => !row.from.startsWith('agent-')),
    /** After a restart of the server the client may wait for it for ever: nobody waits for the client. */
    leave: () => Promise.race([room.disconnect(), new Promise((enough) => setTimeout(enough, 3000).unref())]),
  });
}
