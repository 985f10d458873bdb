import { effect } from '@preact/signals';
import { render } from 'preact';
import './style';
import './style/phone.css';
import { openCarried } from './audio/room-microphone';
import { attend, thisBrowser } from './browser';
import { fetchAdmission, summonAgent } from './client/admission';
import { RoomClient, RoomError } from './client/room';
import { PhonePage } from './page/PhonePage';
import { App } from './state/app';
import { Phone } from './state/phone';

const { timers, tabStorage, location } = thisBrowser;

function newIdentity(): string {
  const random = [...crypto.getRandomValues(new Uint8Array(6))];
  return `phone-${random.map((b) => b.toString(16).padStart(2, '0')).join('')}`;
}

const phone = new Phone(timers, tabStorage, location.search, newIdentity);

let client!: RoomClient;

/** Asks who else there is, for their names as well. Who has just come may get no answer yet, and asks again. */
function look(again = 3): void {
  void client.sources().then((sources) => {
    phone.sources.value = sources;
    app.names.value = new Map(sources.map((s) => [s.id, s.name]));
    const nameless = phone.follow.value?.some((id) => !app.names.value.has(id));
    if (nameless && again > 0) timers.set(() => look(again - 1), 2000);
  });
}

const app: App = new App({
  ...thisBrowser,
  location: {
    protocol: location.protocol,
    host: location.host,
    get hash() {
      return location.hash;
    },
    search: '?turns=agent', // rooms have no others
  },
  setAddress: () => thisBrowser.setAddress(window.location.search),
  openMicrophone: (deviceId, events) => openCarried(deviceId, events, (track) => client.publish(track)),
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
      onFollow: (sources) => {
        phone.follow.value = sources;
        if (sources?.some((id) => !app.names.value.has(id))) look();
      },
    })),
});

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
      leave: () => {
        app.endSession();
        phone.leave();
      },
      look: () => look(),
      follow: (id, on) => void phone.choose(id, on, (sources) => client.follow(sources)),
    }}
  />,
  document.getElementById('app')!,
);
