import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Source } from '../../client/sources';
import type { Forwarder, MidiState } from '../../midi/forwarder';
import type { App } from '../../state/app';
import { plain } from '../../state/plain';
import type { Watch } from '../../state/watch';
import { Icon } from '../Icon';
import { Flag } from './Flag';
import { SourceCard } from './SourceCard';

/** Where signals come from: this machine, other places, and the devices of this browser. */
export function SourceList({ app, watch, midi }: { app: App; watch: Watch; midi: Forwarder }): JSX.Element {
  const adding = useSignal(false);
  const failed = useSignal('');
  const sources = [...watch.known.value.values()];
  const local = sources.filter((s) => s.local);
  const remote = sources.filter((s) => !s.local);
  const listing = watch.listing.value;
  const rescan = async (): Promise<void> => {
    failed.value = await watch.act(watch.sources.scan());
  };
  return (
    <>
      <header>
        <h2>On this machine</h2>
        <button type="button" class="button quiet" id="rescan" onClick={() => void rescan()}>
          <Icon name="find" small />
          Rescan
        </button>
      </header>
      {listing.state === 'refused' && <p class="note wrong">{plain(listing.words)}</p>}
      {listing.state === 'waiting' && <p class="note">The gateway does not say which sources there are. Trying again.</p>}
      {failed.value !== '' && (
        <p class="note wrong" role="alert">
          {plain(failed.value)}
        </p>
      )}
      {watch.listed.value && local.length === 0 && <p class="note">Nothing found on this machine.</p>}
      <Cards app={app} watch={watch} sources={local} />
      <header>
        <h2>Remote</h2>
        <button type="button" class="button quiet" id="add-source" aria-expanded={adding.value} onClick={() => (adding.value = !adding.value)}>
          <Icon name="new" small />
          Add
        </button>
      </header>
      {adding.value && <AddForm watch={watch} onDone={() => (adding.value = false)} />}
      <Cards app={app} watch={watch} sources={remote} />
      <MidiDevices midi={midi} />
    </>
  );
}

function Cards({ app, watch, sources }: { app: App; watch: Watch; sources: readonly Source[] }): JSX.Element | null {
  if (sources.length === 0) return null;
  return (
    <ul class="cards">
      {sources.map((source) => (
        <SourceCard key={source.id} app={app} watch={watch} source={source} />
      ))}
    </ul>
  );
}

function AddForm({ watch, onDone }: { watch: Watch; onDone(): void }): JSX.Element {
  const wrong = useSignal('');
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const value = (name: string): string => (form.elements.namedItem(name) as HTMLInputElement).value.trim();
    if (value('url') === '') {
      wrong.value = 'An address is missing, such as wss://signals.example.org.';
      return;
    }
    wrong.value = await watch.act(watch.sources.add(value('url'), value('name'), value('key')));
    if (wrong.value === '') onDone();
  };
  return (
    <form class="add" onSubmit={(event) => void submit(event)} noValidate>
      <label class="field-row">
        <span class="label">Address: ws, wss, http or https</span>
        <input class="field" name="url" type="url" autocomplete="off" spellcheck={false} aria-invalid={wrong.value !== ''} aria-describedby="add-wrong" />
      </label>
      <label class="field-row">
        <span class="label">Name, if it is to have one</span>
        <input class="field" name="name" maxLength={64} autocomplete="off" />
      </label>
      <label class="field-row">
        <span class="label">Key, if it wants one</span>
        <input class="field" name="key" type="password" autocomplete="off" />
      </label>
      <p class="wrong" id="add-wrong" role="alert">
        {plain(wrong.value)}
      </p>
      <div class="acts">
        <button type="submit" class="button solid">
          Add
        </button>
        <button type="button" class="button" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function MidiDevices({ midi }: { midi: Forwarder }): JSX.Element {
  const it = midi.state.value;
  return (
    <>
      <header>
        <h2>MIDI of this browser</h2>
        {it.state === 'on' && (
          <button type="button" class="button quiet" id="midi-stop" onClick={() => midi.stop()}>
            Stop
          </button>
        )}
      </header>
      <div class="midi" id="midi" data-state={it.state}>
        <p class="note">{midiWords(it)}</p>
        {(it.state === 'off' || it.state === 'refused') && (
          <button type="button" class="button" id="midi-start" onClick={() => void midi.start()}>
            {it.state === 'off' ? 'Use its devices' : 'Ask again'}
          </button>
        )}
        {it.devices.length > 0 && (
          <ul>
            {it.devices.map(({ id, name }) => (
              <li key={id}>
                <Flag identity="midi" />
                <bdi>{plain(name)}</bdi>
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}

function midiWords({ state, devices, sent, lost }: MidiState): string {
  const words: Record<MidiState['state'], string> = {
    off: 'What is played on devices at this browser can become signals. The browser asks first.',
    asking: 'The browser asks whether Vela may use them.',
    refused: 'The browser refused its MIDI devices. Allow them beside the address bar, then ask again.',
    none: 'This browser has no MIDI to give to this page.',
    on: `${devices.length === 0 ? 'No device is there now. One that is plugged in is heard at once.' : `${sent.toLocaleString('en')} signals sent.`}${lost > 0 ? ` ${lost.toLocaleString('en')} were lost: they came faster than the gateway took them.` : ''}`,
  };
  return words[state];
}
