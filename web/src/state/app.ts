import { signal, type ReadonlySignal } from '@preact/signals';
import type { ClientEventV2, ServerEvent, ServerEventV2 } from '@vela/protocol';
import { gatewayRate } from '../audio/chunker';
import { LevelTrace } from '../audio/levels';
import type { InputDevice, MicrophoneEvents, OpenMicrophone } from '../audio/microphone';
import { Client } from '../client/client';
import { Connection, type Cause, type ConnectionStatus, type OpenSocket, type Timers } from '../client/connection';
import { readTurns, socketAddress, type Engines, type Turns } from '../client/engines';
import { announcements } from './announce';
import type { BannerAction } from './banner';
import { helm } from './helm';
import { Hold } from './hold';
import { readSettings, writeSettings, type Settings } from './settings';
import { nothingSaid, reduce, type Action, type Unsent } from './talk';
import { isOver, isToken, readToken, tokenIn, writeToken } from './token';
import { transcript, transcriptName } from './transcript';
import type { Model, SignIn } from './view';

/** What the page needs of the browser; a test hands in its own. */
export interface Browser {
  location: { protocol: string; host: string; search: string; hash: string };
  /** Puts the choice of turns into the page's address, in place of all that follows its path. */
  setAddress(search: string): void;
  storage: Pick<Storage, 'getItem' | 'setItem'> | null;
  /** Of this tab alone. */
  tabStorage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> | null;
  /** Hands the user a file. */
  save(name: string, text: string): void;
  timers: Timers;
  /** Milliseconds of a clock that never jumps. */
  steady(): number;
  vibrate(): void;
  fetchEngines(token: string | null): Promise<Engines | 'sign in' | null>;
  openMicrophone(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone>;
  inputDevices(): Promise<InputDevice[]>;
  socket?: OpenSocket;
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
  /** What is being typed. */
  readonly draft = signal('');
  /** Whether a phone, which has no place for both, shows the typed input. */
  readonly typing = signal(false);
  readonly levels = new LevelTrace();
  #browser: Browser;
  #first: Connection; // version 1: deterministic turns
  #second: Client; // version 2: agent turns
  #token: string | null = null;
  #hold: Hold;
  #lastTurn = 0; // when the session was last used, in ms of the clock
  #announced = 0;
  #fresh = true; // whether this page has had no session yet

  constructor(browser: Browser) {
    this.#browser = browser;
    this.#settings.value = readSettings(browser.storage);
    this.#takeToken();
    const common = {
      url: () => socketAddress(browser.location, this.model.value.turns),
      token: () => this.#token,
      timers: browser.timers,
      ...(browser.socket && { socket: browser.socket }),
    };
    this.#first = new Connection({
      ...common,
      onStatus: (status) => this.#onStatus(status, 'deterministic'),
      onEvent: (event) => this.#onEvent(event),
    });
    this.#second = new Client({
      ...common,
      settings: () => ({ turns: 'agent', interrupt: true, audio: { input: { encoding: 'pcm16', rate: gatewayRate, framing: 'binary' } } }),
      storage: browser.tabStorage,
      onStatus: (status) => this.#onStatus(status, 'agent'),
      onEvent: (event) => this.#onEvent(event),
      onCaughtUp: () => this.#onCaughtUp(),
    });
    this.#hold = new Hold({
      timers: browser.timers,
      send: (event) => this.#first.send(event),
      sendAudio: (pcm) => this.#second.sendAudio(pcm),
      commit: () => this.#send({ type: 'input_audio.commit', payload: {} }),
      // Version 1 has no other word for it than the cancel.
      forget: () => this.#send({ type: this.#isSecond ? 'input_audio.clear' : 'response.cancel', payload: {} }),
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

  /** How long the session outlives its connection, in ms; null in version 1, where it does not. */
  get keptFor(): number | null {
    return this.#isSecond ? (this.#second.terms?.resumeWindowMs ?? null) : null;
  }

  /** How long the session was not used, in ms. */
  idleFor(): number {
    return this.#browser.timers.now() - this.#lastTurn;
  }

  get #isSecond(): boolean {
    return this.model.value.turns === 'agent';
  }

  get #line(): Connection | Client {
    return this.#isSecond ? this.#second : this.#first;
  }

  /** Sends in the version that the turns have, and says whether there was somebody to send to. */
  #send(event: Extract<ClientEventV2, { type: 'input_audio.commit' | 'input_audio.clear' | 'response.cancel' | 'mocked.turn.trigger' }>): boolean {
    if (this.#isSecond) return this.#second.send(event) !== null;
    return event.type !== 'input_audio.clear' && this.#first.send({ type: event.type, payload: {} });
  }

  /** Asks the gateway what it has, then connects. */
  async start(): Promise<void> {
    const engines = await this.#askEngines();
    const asked = readTurns(new URLSearchParams(this.#browser.location.search).get('turns'));
    if (engines === 'sign in') {
      this.#set({ turns: asked ?? 'agent' });
      return this.#askForToken();
    }
    this.#set({ engines, turns: asked ?? engines?.turns ?? 'deterministic' });
    this.#line.connect();
  }

  async refreshEngines(): Promise<void> {
    const engines = await this.#askEngines();
    if (engines && engines !== 'sign in') this.#set({ engines });
  }

  #askEngines(): ReturnType<Browser['fetchEngines']> {
    return this.#browser.fetchEngines(this.#token);
  }

  /** A token in the address is taken out of it at once, and goes nowhere but to the gateway. */
  #takeToken(): boolean {
    const { location, tabStorage } = this.#browser;
    const given = tokenIn(location.hash);
    if (location.hash.includes('token=')) this.#browser.setAddress(location.search);
    if (given) writeToken(tabStorage, given);
    this.#token = readToken(tabStorage) ?? given;
    return given !== null;
  }

  /** Another token was put into the address of the open page. */
  hashChanged(): void {
    if (this.#takeToken() && this.model.value.signIn) void this.#comeIn();
  }

  /** The words that the user typed into the sign-in view. */
  signIn(typed: string): void {
    const token = typed.trim();
    if (!isToken(token)) return this.#set({ signIn: token === '' ? 'needed' : 'refused' });
    writeToken(this.#browser.tabStorage, token);
    this.#token = token;
    void this.#comeIn();
  }

  async #comeIn(): Promise<void> {
    const engines = await this.#askEngines();
    if (engines === 'sign in') return this.#askForToken();
    // The gateway's own turns are known only now, unless the address chose.
    const asked = readTurns(new URLSearchParams(this.#browser.location.search).get('turns'));
    const begun = this.model.value.talk.turns.length > 0;
    const turns = begun ? this.model.value.turns : (asked ?? engines?.turns ?? this.model.value.turns);
    this.#set({ signIn: null, turns, ...(engines && { engines }) });
    this.#line.connect();
  }

  /** The gateway does not take the token, if there was one: it is forgotten, and asked for. */
  #askForToken(): void {
    const had = this.#token;
    if (had === null && this.model.value.signIn) return; // it is being asked for
    const signIn: SignIn = had === null ? 'needed' : isOver(had, this.#browser.timers.now()) ? 'expired' : 'refused';
    this.#token = null;
    writeToken(this.#browser.tabStorage, null);
    this.#set({ signIn });
  }

  connect(): void {
    this.#line.connect();
  }

  endSession(): void {
    this.#hold.discard();
    this.#line.disconnect();
  }

  /** The page goes, or is loaded again: its session waits for it. */
  leaving(): void {
    if (this.#isSecond) this.#second.keep();
  }

  /** The page did not go after all. */
  stayed(): void {
    this.#second.unkeep();
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
    this.#send({ type: 'response.cancel', payload: {} });
    return true;
  }

  /** Sends what was typed, and says whether it did. */
  submit(text: string): boolean {
    const { input } = helm(this.model.value);
    if (!input.shown || input.disabled || text.trim() === '') return false;
    const id = this.#second.send({ type: 'input_text.submit', payload: { text: text.trim() } });
    if (id === null) return false;
    this.#dispatch({ type: 'submitted', text: text.trim(), id });
    return true;
  }

  /** The words of a hold that was broken off, as if they had been typed. */
  sendUnsent(): void {
    const { unsent } = this.model.value.talk;
    if (unsent) this.submit(unsent.text);
  }

  newConversation(): void {
    if (helm(this.model.value).clear.disabled) return;
    if (this.#second.send({ type: 'history.clear', payload: {} }) !== null) this.#dispatch({ type: 'clearing' });
  }

  saveTranscript(): void {
    const model = this.model.value;
    if (model.talk.turns.length > 0) this.#browser.save(transcriptName(model), transcript(model));
  }

  runMockedTurn(): void {
    if (helm(this.model.value).mocked.disabled) return;
    if (!this.#send({ type: 'mocked.turn.trigger', payload: {} })) return;
    this.#dispatch({ type: 'triggered' });
  }

  /** The page is out of sight: nothing is captured there. */
  hidden(): void {
    this.#hold.lose('hidden');
    this.#hold.closeMicrophone();
  }

  online(): void {
    if (this.#line.status.retryAt !== null) this.#line.tryNow();
  }

  setTurns(turns: Turns): void {
    if (turns === this.model.value.turns) return;
    this.#browser.setAddress(`?turns=${turns}`);
    this.#line.disconnect();
    this.#hold.closeMicrophone();
    this.#set({ turns, microphone: 'closed' });
    this.#line.connect();
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
        return this.#line.connect();
      case 'try now':
        return this.#line.tryNow();
      case 'microphone':
        return void this.#hold.openMicrophone(this.settings.value.deviceId);
      case 'settings':
        this.#dispatch({ type: 'dismissed', what: 'failure' });
        this.settingsOpen.value = true;
        return;
      case 'ask again':
        this.submit(this.model.value.talk.turns.at(-1)?.said ?? '');
        return;
      case 'dismiss failure':
        return this.#dispatch({ type: 'dismissed', what: 'failure' });
      case 'dismiss new session':
        return this.#dispatch({ type: 'dismissed', what: 'new session' });
    }
  }

  #onStatus(connection: ConnectionStatus, turns: Turns): void {
    if (turns !== this.model.value.turns) return;
    if (connection.state !== 'connected') this.#hold.lose('connection');
    if (connection.state !== 'connected') this.#hold.forget();
    const action = this.#statusAction(connection);
    this.#set({ connection, ...(action && { talk: this.#reduced(action) }) });
    if (isClosed(connection.cause, 4001)) this.#askForToken();
    else if (this.#token !== null && (connection.cause?.kind === 'socket' || isClosed(connection.cause, 1006))) void this.#checkToken();
  }

  #statusAction({ state, keptUntil }: ConnectionStatus): Action | undefined {
    if (keptUntil !== undefined) return state === 'connected' || this.model.value.talk.kept ? undefined : { type: 'kept' };
    const actions: Partial<Record<ConnectionStatus['state'], Action>> = {
      connecting: { type: 'connecting' },
      disconnected: { type: 'lost' },
      error: { type: 'lost' },
      'not connected': { type: 'closed by the user' },
    };
    return actions[state];
  }

  /** A browser does not say why a handshake failed. It may be for want of a token. */
  async #checkToken(): Promise<void> {
    if ((await this.#askEngines()) !== 'sign in') return;
    const cause: Cause = { kind: 'closed', code: 4001, reason: '' };
    // Its status asks for the token.
    if (this.#isSecond) this.#second.pause(cause);
    else {
      this.#first.disconnect();
      this.#askForToken();
    }
  }

  #onEvent(event: ServerEvent | ServerEventV2): void {
    const back = event.type === 'session.ready' && this.model.value.talk.turns.length > 0;
    this.#dispatch({ type: 'server', event });
    if (event.type === 'session.ready' || event.type === 'session.state') this.#lastTurn = this.#browser.timers.now();
    if (event.type === 'session.ready' && !('recovered' in event.payload && event.payload.recovered)) this.#fresh = false;
    if (back) void this.refreshEngines(); // another gateway may have come up in its place
  }

  /** Everything that was missed is here. */
  #onCaughtUp(): void {
    const { talk } = this.model.value;
    if (this.#fresh) this.#second.send({ type: 'history.get', payload: {} });
    this.#fresh = false;
    if (talk.clearing) this.#second.send({ type: 'history.clear', payload: {} });
    // The gateway may still listen to a hold that was lost. One that was let go is past that, and does not mind.
    if (talk.phase === 'listening' && !talk.held) this.#send({ type: 'input_audio.clear', payload: {} });
    this.#dispatch({ type: 'caught up' });
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

function isClosed(cause: Cause | null, code: number): boolean {
  return cause?.kind === 'closed' && cause.code === code;
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
  signIn: null,
};
