import { effect } from '@preact/signals';
import { render } from 'preact';
import './style';
import './style/phone.css';
import type { OpenMicrophone } from './audio/microphone';
import { RoomMicrophone } from './audio/room-microphone';
import { attend, thisBrowser } from './browser';
import { fetchAdmission, summonAgent } from './client/admission';
import { RoomClient, RoomError } from './client/room';
import { PhonePage } from './page/PhonePage';
import { App } from './state/app';
import { Phone } from './state/phone';

const { timers, tabStorage, location } = thisBrowser;
const phone = new Phone(timers, tabStorage, location.search, () => `phone-${[...crypto.getRandomValues(new Uint8Array(6))].map((b) => b.toString(16).padStart(2, '0')).join('')}`);

let client!: RoomClient;
const microphone = new RoomMicrophone((track) => client.publish(track));

const app = new App({
  ...thisBrowser,
  location: { protocol: location.protocol, host: location.host, hash: location.hash, search: '?turns=agent' },
  setAddress: () => thisBrowser.setAddress(window.location.search),
  openMicrophone: (deviceId, events) => microphone.open(deviceId, events),
  openSession: (options) =>
    (client = new RoomClient({
      ...options,
      place: () => phone.place,
      admit: (place, token) => fetchAdmission(place, token),
      summon: (room, token) => summonAgent(room, token),
      // Far larger than all of the page: only who joins loads it.
      join: async (admission, events) => {
        const { joinLiveKit } = await import('./client/livekit').catch(() => {
          throw new RoomError('unreachable');
        });
        return joinLiveKit(admission, events);
      },
      onWords: (words) => phone.said(words),
      onAgent: (state) => phone.agent(state),
    })),
});

let handsFree: Promise<OpenMicrophone | null> | null = null;

/** The microphone stays open, or is given back. Where it cannot be opened, the banner says why. */
function setHandsFree(on: boolean): void {
  if (on === (handsFree !== null)) return;
  phone.handsFree.value = on;
  client.handsFree = on;
  if (!on) {
    void handsFree?.then((open) => open?.close());
    handsFree = null;
    return;
  }
  handsFree = microphone
    .open(app.settings.value.deviceId, { onChunk: () => {}, onLost: () => setHandsFree(false) })
    .catch(() => {
      setHandsFree(false);
      app.act('microphone');
      return null;
    });
}

effect(() => client.speak(app.settings.value.speak));
attend(app);
let started = false;
render(
  <PhonePage
    app={app}
    phone={phone}
    actions={{
      join: () => {
        if (started) return app.connect();
        started = true;
        void app.start();
      },
      handsFree: setHandsFree,
      leave: () => {
        setHandsFree(false);
        app.endSession();
        phone.leave();
      },
    }}
  />,
  document.getElementById('app')!,
);
