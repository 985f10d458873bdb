import { signal, type ReadonlySignal } from '@preact/signals';
import type { ServerEvent } from '@vela/protocol';
import { LevelTrace } from '../audio/levels';
import type { InputDevice, MicrophoneEvents, OpenMicrophone } from '../audio/microphone';
import { Connection, type ConnectionStatus, type Socket, type Timers } from '../client/connection';
import { readTurns, socketAddress, type Engines, type Turns } from '../client/engines';
import { announcements } from './announce';
import type { BannerAction } from './banner';
import { helm } from './helm';
import { Hold } from './hold';
import { readSettings, writeSettings, type Settings } from './settings';
import { nothingSaid, reduce, type Action, type Unsent } from './talk';
import type { Model } from './view';

/** What the page needs of the browser; a test hands in its own. */
export interface Browser {
  location: { protocol: string; host: string; search: string };
  /** Puts the choice of turns into the page's address. */
  setAddress(search: string): void;
  storage: Pick<Storage, 'getItem' | 'setItem'> | null;
  timers: Timers;
  /** Milliseconds of a clock that never jumps. */
  steady(): number;
  vibrate(): void;
  fetchEngines(): Promise<Engines | null>;
  openMicrophone(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone>;
  inputDevices(): Promise<InputDevice[]>;
  socket?(url: string): Socket;
}

/**
 * The page without its looks: it owns the connection, the hold and the one model that everything shown comes from.
 *
 * Start at start(). The components call press(), release() and so on, and draw what `model` says.
 */
export class App {
  readonly #model = signal<Model>(nothing);
  readonly #spoken = signal<readonly Announcement[]>([]);
  readonly #settings = signal<Settings>(readSettings(null));
  readonly #devices = signal<readonly InputDevice[]>([]);
  readonly settingsOpen = signal(false);
  readonly levels = new LevelTrace();
  #browser: Browser;
  #connection: Connection;
  #hold: Hold;
  #lastTurn = 0; // when the session was last used, in ms of the clock
  #announced = 0;

  constructor(browser: Browser) {
    this.#browser = browser;
    this.#settings.value = readSettings(browser.storage);
    this.#connection = new Connection({
      url: () => socketAddress(browser.location, this.model.value.turns),
      onStatus: (status) => this.#onStatus(status),
      onEvent: (event) => this.#onEvent(event),
      timers: browser.timers,
      ...(browser.socket && { socket: browser.socket }),
    });
    this.#hold = new Hold({
      timers: browser.timers,
      send: (event) => this.#connection.send(event),
      dispatch: (action) => this.#dispatch(action),
      onMicrophone: (microphone) => {
        this.#set({ microphone });
        if (microphone === 'open') void this.#findDevices();
      },
      onLevel: (level) => this.levels.push(level, browser.steady()),
      busy: () => this.model.value.talk.inFlight !== null,
      open: browser.openMicrophone,
    });
    this.#model.value = { ...nothing, tapInsteadOfHold: this.settings.value.tapInsteadOfHold };
  }

  get model(): ReadonlySignal<Model> {
    return this.#model;
  }

  get settings(): ReadonlySignal<Settings> {
    return this.#settings;
  }

  get devices(): ReadonlySignal<readonly InputDevice[]> {
    return this.#devices;
  }

  /** What a screen reader is told, newest last. */
  get announcements(): ReadonlySignal<readonly Announcement[]> {
    return this.#spoken;
  }

  /** How long the session was not used, in ms. */
  idleFor(): number {
    return this.#browser.timers.now() - this.#lastTurn;
  }

  /** Asks the gateway what it has, then connects. */
  async start(): Promise<void> {
    const engines = await this.#browser.fetchEngines();
    const asked = readTurns(new URLSearchParams(this.#browser.location.search).get('turns'));
    this.#set({ engines, turns: asked ?? engines?.turns ?? 'deterministic' });
    this.#connection.connect();
  }

  async refreshEngines(): Promise<void> {
    const engines = await this.#browser.fetchEngines();
    if (engines) this.#set({ engines });
  }

  connect(): void {
    this.#connection.connect();
  }

  endSession(): void {
    this.#hold.discard();
    this.#connection.disconnect();
  }

  press(): void {
    const { turns, talk } = this.model.value;
    if (talk.held || helm(this.model.value).control.disabled) return;
    if (turns === 'deterministic') this.#hold.pressShell();
    else this.#hold.pressVoice(this.settings.value.deviceId);
  }

  release(): void {
    void this.#hold.release();
  }

  loseHold(why: Unsent): void {
    this.#hold.lose(why);
  }

  /** For Escape and the stop control: whichever of the two applies. Says whether one did. */
  stop(): boolean {
    if (this.#hold.discard()) return true;
    if (helm(this.model.value).stop.disabled) return false;
    this.#hold.forget();
    this.#dispatch({ type: 'cancelled' });
    this.#connection.send({ type: 'response.cancel', payload: {} });
    return true;
  }

  runMockedTurn(): void {
    if (helm(this.model.value).mocked.disabled) return;
    if (!this.#connection.send({ type: 'mocked.turn.trigger', payload: {} })) return;
    this.#dispatch({ type: 'triggered' });
  }

  /** The page is out of sight: nothing is captured there. */
  hidden(): void {
    this.#hold.lose('hidden');
    this.#hold.closeMicrophone();
  }

  online(): void {
    if (this.#connection.status.retryAt !== null) this.#connection.tryNow();
  }

  setTurns(turns: Turns): void {
    if (turns === this.model.value.turns) return;
    this.#browser.setAddress(`?turns=${turns}`);
    this.#connection.disconnect();
    this.#hold.closeMicrophone();
    this.#set({ turns, microphone: 'closed' });
    this.#connection.connect();
  }

  change(change: Partial<Settings>): void {
    const settings = { ...this.settings.value, ...change };
    this.#settings.value = settings;
    writeSettings(this.#browser.storage, settings);
    if (change.deviceId !== undefined) this.#hold.useDevice(change.deviceId);
    this.#set({ tapInsteadOfHold: settings.tapInsteadOfHold });
  }

  dismissUnsent(): void {
    this.#dispatch({ type: 'dismissed', what: 'unsent' });
  }

  act(action: BannerAction): void {
    switch (action) {
      case 'connect':
        this.#dispatch({ type: 'dismissed', what: 'failure' });
        return this.#connection.connect();
      case 'try now':
        return this.#connection.tryNow();
      case 'microphone':
        return void this.#hold.openMicrophone(this.settings.value.deviceId);
      case 'settings':
        this.#dispatch({ type: 'dismissed', what: 'failure' });
        this.settingsOpen.value = true;
        return;
      case 'dismiss failure':
        return this.#dispatch({ type: 'dismissed', what: 'failure' });
      case 'dismiss new session':
        return this.#dispatch({ type: 'dismissed', what: 'new session' });
    }
  }

  #onStatus(connection: ConnectionStatus): void {
    if (connection.state !== 'connected') this.#hold.lose('connection');
    if (connection.state !== 'connected') this.#hold.forget();
    const actions: Partial<Record<ConnectionStatus['state'], Action>> = {
      connecting: { type: 'connecting' },
      disconnected: { type: 'lost' },
      error: { type: 'lost' },
      'not connected': { type: 'closed by the user' },
    };
    const action = actions[connection.state];
    this.#set({ connection, ...(action && { talk: this.#reduced(action) }) });
  }

  #onEvent(event: ServerEvent): void {
    const back = event.type === 'session.ready' && this.model.value.talk.turns.length > 0;
    this.#dispatch({ type: 'server', event });
    if (event.type === 'session.ready' || event.type === 'session.state') this.#lastTurn = this.#browser.timers.now();
    if (back) void this.refreshEngines(); // another gateway may have come up in its place
  }

  #dispatch(action: Action): void {
    if (action.type === 'held') {
      this.levels.clear();
      this.#browser.vibrate();
    }
    this.#set({ talk: this.#reduced(action) });
  }

  #reduced(action: Action): Model['talk'] {
    return reduce(this.model.value.talk, action, { clock: this.#browser.timers.now(), steady: this.#browser.steady() });
  }

  #set(change: Partial<Model>): void {
    const before = this.model.value;
    this.#model.value = { ...before, ...change };
    const said = announcements(before, this.#model.value).map((text) => ({ id: ++this.#announced, text }));
    // A few stay, since a screen reader may not have come to the one before.
    if (said.length > 0) this.#spoken.value = [...this.#spoken.value, ...said].slice(-5);
  }

  async #findDevices(): Promise<void> {
    this.#devices.value = await this.#browser.inputDevices();
  }
}

export interface Announcement {
  id: number;
  text: string;
}

const nothing: Model = {
  connection: { state: 'not connected', cause: null, retryAt: null },
  talk: nothingSaid,
  turns: 'deterministic',
  engines: null,
  microphone: 'closed',
  tapInsteadOfHold: false,
};
