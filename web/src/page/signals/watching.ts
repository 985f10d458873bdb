import { Forwarder, type MidiAccess, type RequestMidi } from '../../midi/forwarder';
import { systemTimers } from '../../client/line';
import type { App } from '../../state/app';
import { Consent } from '../../state/consent';
import { Watch } from '../../state/watch';

/** What the views of signals and of wiring have in common, for as long as the page lives. */
export interface Watching {
  watch: Watch;
  midi: Forwarder;
}

const all = new WeakMap<App, Watching>();

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null; // closed to this page
  }
}

function midiOfBrowser(): RequestMidi {
  if (typeof navigator.requestMIDIAccess !== 'function') return null;
  // Without system exclusive messages, which can write to a device.
  return async () => (await navigator.requestMIDIAccess({ sysex: false })) as unknown as MidiAccess;
}

/** Makes it at the first call. */
export function watchingOf(app: App): Watching {
  let it = all.get(app);
  if (it) return it;
  const asker = { token: () => app.token };
  it = {
    watch: new Watch({ ...asker, timers: systemTimers, consent: new Consent(storage()), frame: (draw) => void requestAnimationFrame(draw) }),
    midi: new Forwarder(asker, midiOfBrowser(), systemTimers.now),
  };
  all.set(app, it);
  return it;
}
