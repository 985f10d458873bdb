import { signal, type ReadonlySignal } from '@preact/signals';
import type { ClientEventV2, ServerEvent, ServerEventV2, State } from '@vela/protocol';
import { gatewayRate } from '../audio/chunker';
import { LevelTrace } from '../audio/levels';
import type { InputDevice } from '../audio/microphone';
import { Client, type Session } from '../client/client';
import { Connection, type Cause, type ConnectionStatus } from '../client/connection';
import { readTurns, socketAddress, type Turns } from '../client/engines';
import { announcements, connectionTold } from './announce';
import { Announcer, type Announcement } from './announcer';
import { isOpen, keepAnswers, takeAnswers, type Approval } from './approvals';
import type { BannerAction } from './banner';
import type { Browser } from './browser';
import { agentChoice, voiceChoice } from './choice';
import { Deadlines } from './deadlines';
import { Ear } from './ear';
import { cannotListen, HandsFree, listening } from './handsfree';
import { helm, interruptible, mayTalk, turnActive } from './helm';
import { Hold } from './hold';
import { keepPlayed, takePlayed } from './played';
import { oneLine } from './plain';
import { reduce } from './reduce';
import { detectionOf, readSettings, writeSettings, type Settings } from './settings';
import { Speaker } from './speaker';
import { statusFor, type Status } from './status';
import type { Action, Unsent } from './talk';
import { soundFormat, Terms } from './terms';
import { isOver, isToken, mayFollow, readToken, tokenIn, writeToken } from './token';
import { transcript, transcriptName } from './transcript';
import { nothing, voicesThere, type MicrophoneState, type Model, type SignIn } from './view';
import { choose, onArtifact, unwatched, type Viewer } from './viewer';
import { viewIn, type ViewName } from './views';

/**
 * The page without its looks: it owns the connection, the hold and the one model that everything shown comes from.
 *
 * Start at start(). The components call press(), release() and so on, and draw what `model` says.
 */
export class App {
  readonly #model = signal<Model>(nothing);
  readonly #announcer = new Announcer();
  readonly #settings = signal<Settings>(readSettings(null));
  readonly #devices = signal<readonly InputDevice[]>([]);
  readonly settingsOpen = signal(false);
  readonly #view = signal<ViewName>('talk');
  /** What is being typed. */
  readonly draft = signal('');
  /** Whether a phone, which has no place for both, shows the typed input. */
  readonly typing = signal(false);
  /** What the user did with the artifacts. */
  readonly viewer = signal<Viewer>(unwatched);
  /** What sources are called, by their ids, as far as somebody has asked. */
  readonly names = signal<ReadonlyMap<string, string>>(new Map());
  readonly levels = new LevelTrace();
  #browser: Browser;
  #first: Connection; // version 1: deterministic turns
  #second: Session; // version 2: agent turns
  #terms: Terms;
  #token: string | null = null;
  #ear: Ear;
  #hold: Hold;
  #handsFree: HandsFree;
  #speaker: Speaker;
  #session = ''; // the last one that was ready
  #lastTurn = 0; // when the session was last used, in ms of the clock
  #fresh = true; // whether this page has had no session yet
  #again = false; // whether what comes happened before
  #asked = ''; // the agent that was chosen, until the gateway says who answers
  #covered = false; // whether the page is out of sight
  #statusTimer: unknown = null;
  #statusTold = -Infinity; // when a status was read out last, in ms of the clock
  #deadlines: Deadlines;
  #answers: Map<string, 'allowed' | 'denied'>; // what was answered before the page was loaded again

  constructor(browser: Browser) {
    this.#browser = browser;
    this.#settings.value = readSettings(browser.storage);
    this.#takeToken();
    this.#chooseView();
    this.#answers = takeAnswers(browser.tabStorage);
    this.#deadlines = new Deadlines(browser.timers, (id) => this.#dispatch({ type: 'too late', id }));
    const common = {
      url: () => socketAddress(browser.location, this.model.value.turns),
      token: () => this.#token,
      timers: browser.timers,
      ...(browser.socket && { socket: browser.socket }),
      ...(browser.random && { random: browser.random }),
    };
    this.#first = new Connection({
      ...common,
      onStatus: (status) => this.#onStatus(status, 'deterministic'),
      onEvent: (event) => this.#onEvent(event),
    });
    const openSession = browser.openSession ?? ((options) => new Client(options));
    this.#second = openSession({
      ...common,
      settings: () => ({
        turns: 'agent',
        interrupt: true,
        approvals: true,
        audio: {
          input: { encoding: 'pcm16', rate: gatewayRate, framing: 'binary' },
          ...(this.#wantsSound && { output: soundFormat }),
        },
        ...this.#wantedAgent(),
        ...this.#wantedVoice(),
      }),
      storage: browser.tabStorage,
      onStatus: (status) => this.#onStatus(status, 'agent'),
      onEvent: (event) => this.#onEvent(event),
      onCaughtUp: () => this.#onCaughtUp(),
    });
    this.#terms = new Terms(this.#second, {
      sound: () => this.#wantsSound,
      detection: () => this.#handsFree.state === 'on' && !cannotListen(this.model.value),
      vad: () => detectionOf(this.settings.value),
      free: () => this.#isSecond && !turnActive(this.model.value),
      follow: () => Object.keys(this.settings.value.follow),
      notDetecting: () => this.change({ handsFree: false }),
    });
    this.#ear = new Ear({
      timers: browser.timers,
      open: browser.openMicrophone,
      onState: (microphone) => this.#onMicrophone(microphone),
      onOpen: () => this.#onEar(),
      onChunk: (chunk) => this.#hold.take(chunk) || this.#handsFree.take(chunk),
      onLost: () => {
        this.#hold.lose('microphone');
        this.#handsFree.unplugged();
        if (this.model.value.handsFree === 'on') this.#dispatch({ type: 'note', note: 'microphone gone' });
      },
      busy: () => this.#hold.busy || this.model.value.talk.inFlight !== null || (this.#isThere && listening(this.model.value) === 'live'),
    });
    this.#hold = new Hold({
      ear: this.#ear,
      timers: browser.timers,
      send: (event) => this.#first.send(event),
      sendAudio: (pcm) => this.#second.sendAudio(pcm),
      commit: () => this.#send({ type: 'input_audio.commit', payload: {} }),
      // Version 1 has no other word for it than the cancel.
      forget: () => this.#send({ type: this.#isSecond ? 'input_audio.clear' : 'response.cancel', payload: {} }),
      dispatch: (action) => this.#dispatch(action),
      onLevel: (level) => this.levels.push(level, browser.steady()),
      taps: () => this.taps,
      onTap: () => this.#handsFree.tap(),
      live: () => listening(this.model.value) === 'live',
      free: () => mayTalk(this.model.value),
    });
    this.#handsFree = new HandsFree(this.settings.value.handsFree, {
      ear: this.#ear,
      deviceId: () => this.settings.value.deviceId,
      listening: () => listening(this.model.value),
      sendAudio: (pcm) => this.#second.sendAudio(pcm),
      onLevel: (level) => {
        if (this.model.value.talk.phase !== 'speaking') this.levels.push(level, browser.steady());
      },
      onState: (handsFree) => {
        this.#set({ handsFree });
        this.#terms.agree();
      },
      onBrokenOff: (why) => this.#breakOff(why),
    });
    this.#speaker = new Speaker({
      timers: browser.timers,
      open: browser.openPlayer,
      ack: (responseId, playedMs) => this.#second.send({ type: 'playback.ack', payload: { responseId, playedMs } }) !== null,
      onPlayed: (responseId, playedMs) => this.#dispatch({ type: 'played', responseId, playedMs, last: false }),
      onLevel: (level) => {
        const { held, phase } = this.model.value.talk;
        if (!held && phase === 'speaking') this.levels.push(level, browser.steady());
      },
      onBlocked: (blocked) => this.#set({ blocked }),
    });
    this.#speaker.mute(!this.settings.value.speak);
    this.#model.value = { ...nothing, tapInsteadOfHold: this.settings.value.tapInsteadOfHold, handsFree: this.#handsFree.state };
  }

  get model(): ReadonlySignal<Model> {
    return this.#model;
  }

  /** Which view is shown. The address says it, behind its #. */
  get view(): ReadonlySignal<ViewName> {
    return this.#view;
  }

  /** Whether who comes may have a hand in sources and in what signals set off: no token allows that. */
  get operates(): boolean {
    return this.#token === null;
  }

  /** Those that there are for who comes. */
  get views(): readonly ViewName[] {
    if (this.operates) return ['talk', 'signals', 'wiring'];
    return mayFollow(this.#token!) ? ['talk', 'signals'] : ['talk'];
  }

  /** Who comes, for what else the page asks of the gateway. */
  get token(): string | null {
    return this.#token;
  }

  get settings(): ReadonlySignal<Settings> {
    return this.#settings;
  }

  get devices(): ReadonlySignal<readonly InputDevice[]> {
    return this.#devices;
  }

  /** What a screen reader is told, newest last. */
  get announcements(): ReadonlySignal<readonly Announcement[]> {
    return this.#announcer.told;
  }

  /** Whether a short press of the control means something by itself; and whether no press means anything else. */
  get taps(): 'no' | 'or hold' | 'only' {
    const now = listening(this.model.value);
    return now === 'off' ? 'no' : now === 'closed' ? 'only' : 'or hold';
  }

  /** How long the session outlives its connection, in ms; null where it does not: in version 1, and in a room. */
  get keptFor(): number | null {
    return (this.#isSecond && this.#second.terms?.resumeWindowMs) || null;
  }

  /** How long the session was not used, in ms. */
  idleFor(): number {
    return this.#browser.timers.now() - this.#lastTurn;
  }

  get #isSecond(): boolean {
    return this.model.value.turns === 'agent';
  }

  /** What to call who does something; '' for the session's own agent. */
  nameOf({ source }: Status): string {
    return source === undefined ? '' : oneLine(this.names.value.get(source) ?? this.settings.value.follow[source] ?? source.replace(/^local:/, ''));
  }

  /** Whether there is a session to talk to. */
  get #isThere(): boolean {
    const { connection, talk } = this.model.value;
    return connection.state === 'connected' && talk.sessionId !== null && !talk.kept;
  }

  get #line(): Connection | Session {
    return this.#isSecond ? this.#second : this.#first;
  }

  /** Sends in the version that the turns have, and says whether there was somebody to send to. */
  #send(event: Extract<ClientEventV2, { type: 'input_audio.commit' | 'input_audio.clear' | 'response.cancel' | 'mocked.turn.trigger' }>): boolean {
    if (this.#isSecond) return this.#second.send(event) !== null;
    return event.type !== 'input_audio.clear' && this.#first.send({ type: event.type, payload: {} });
  }

  /** Whether a new session is to be asked for sound. A gateway without a voice would refuse it. */
  get #wantsSound(): boolean {
    return this.settings.value.speak && this.model.value.engines?.voices.some((v) => v.available) === true;
  }

  get #isAloud(): boolean {
    return this.#isSecond && this.#speaker.aloud && !!this.#second.terms?.audio?.output;
  }

  #onMicrophone(microphone: MicrophoneState): void {
    this.#set({ microphone });
    if (microphone === 'open') void this.#findDevices();
    else if (microphone !== 'opening' && microphone !== 'closed') {
      this.#hold.failed();
      this.#handsFree.failed();
    }
  }

  #onEar(): void {
    this.#handsFree.opened();
    if (!this.#hold.opened() && this.model.value.handsFree !== 'on') this.#dispatch({ type: 'note', note: 'microphone on' });
  }

  /** What is being heard by itself is no turn: half a sentence is not sent. */
  #breakOff(why: Unsent): void {
    const { talk } = this.model.value;
    if (!talk.detects || talk.held || talk.phase !== 'listening') return;
    if (talk.partial !== '') this.#dispatch({ type: 'hold lost', why });
    this.#send({ type: 'input_audio.clear', payload: {} });
  }

  /** Falls silent, and tells the gateway how much was heard of the answer that what follows will end. */
  #interrupt(): void {
    if (!this.#isSecond || !interruptible(this.model.value)) return;
    void this.#cut()?.then(({ responseId, playedMs }) => {
      this.#dispatch({ type: 'played', responseId, playedMs, last: true });
      this.#second.send({ type: 'playback.ack', payload: { responseId, playedMs } });
    });
  }

  #cut(): ReturnType<Speaker['cut']> {
    if (!this.#isAloud) return null;
    const { turns, open } = this.model.value.talk;
    return this.#speaker.cut(turns.find((t) => t.id === open)?.responseId ?? null);
  }

  /** An answer that fell silent here is to end, though nothing that would have ended it has been sent. */
  #endSilenced(): void {
    const cut = this.#speaker.unsettled;
    if (cut) this.#second.send({ type: 'response.cancel', payload: { ...cut } });
  }

  /** Somebody presses something: from now on the browser lets sound out. */
  pressed(): void {
    if (this.#isSecond && this.#wantsSound) this.#speaker.wake();
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
    await this.#meetAgents();
    this.#line.connect();
  }

  async refreshEngines(): Promise<void> {
    const engines = await this.#askEngines();
    if (engines && engines !== 'sign in') this.#set({ engines });
    await this.#meetAgents();
  }

  /** Who could answer. Only a choice that was made before has to wait for it. */
  async #meetAgents(): Promise<void> {
    if (!this.#isSecond) return;
    const met = this.#browser.fetchAgents(this.#token).then((agents) => {
      if (agents) this.#set({ agents });
    });
    if (this.settings.value.agent !== '' && !this.model.value.agents) await met;
  }

  /** The agent that was chosen, as long as it is there: a session with another one would be refused. */
  #wantedAgent(): { agent?: string } {
    const { agent } = this.settings.value;
    return this.model.value.agents?.agents.some((a) => a.name === agent && a.available) ? { agent } : {};
  }

  /** Lets another agent answer from the next turn on. It is kept for the next visit when the gateway has taken it. */
  chooseAgent(name: string): void {
    const choice = agentChoice(this.model.value);
    const chosen = choice?.others?.find((a) => a.name === name);
    if (!chosen?.available || choice!.off !== '' || name === choice!.present.name) return;
    if (this.#second.send({ type: 'session.start', payload: { agent: name } }) !== null) this.#asked = name;
  }

  #wantedVoice(): { voice?: string } {
    const { voice } = this.settings.value;
    return voicesThere(this.model.value).some((v) => v.name === voice) ? { voice } : {};
  }

  /** Lets another voice speak from the next answer on, and in the next visit. */
  chooseVoice(voice: string): void {
    if (voiceChoice(this.model.value)?.off !== '') return;
    this.change({ voice });
    this.#second.send({ type: 'session.start', payload: this.#wantedVoice() });
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
    this.#token = readToken(tabStorage) ?? given ?? this.#token;
    return given !== null;
  }

  /** Another view, or another token, was put into the address of the open page. */
  hashChanged(): void {
    const taken = this.#takeToken();
    this.#chooseView();
    this.#look();
    if (taken && this.model.value.signIn) void this.#comeIn();
  }

  #chooseView(): void {
    this.#view.value = viewIn(this.#browser.location.hash, this.views);
  }

  /** The words that the user typed into the sign-in view. */
  signIn(typed: string): void {
    const token = typed.trim();
    if (!isToken(token)) return this.#set({ signIn: token === '' ? 'needed' : 'refused' });
    writeToken(this.#browser.tabStorage, token);
    this.#token = token;
    this.#chooseView();
    this.#look();
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
    await this.#meetAgents();
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

  /** The page goes, or is loaded again: its session waits for it. What it has of the machine's sound is given back, unless it may come back. */
  leaving(forGood = true): void {
    if (this.#isSecond) {
      this.#second.keep();
      keepPlayed(this.#browser.tabStorage, this.model.value.talk.sessionId, this.#speaker.played);
      keepAnswers(this.#browser.tabStorage, this.#approvals());
    }
    if (!forGood) return;
    this.#ear.close();
    this.#speaker.leave();
  }

  /** The page did not go after all. */
  stayed(): void {
    this.#second.unkeep();
    takePlayed(this.#browser.tabStorage);
    takeAnswers(this.#browser.tabStorage);
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
    const silence = this.#cut();
    this.#dispatch({ type: 'cancelled' });
    if (!silence) this.#send({ type: 'response.cancel', payload: {} });
    else {
      void silence.then((played) => {
        this.#dispatch({ type: 'played', ...played, last: true });
        this.#second.send({ type: 'response.cancel', payload: { ...played } });
      });
    }
    return true;
  }

  /** Sends what was typed, and says whether it did. */
  submit(text: string): boolean {
    const { input } = helm(this.model.value);
    if (!input.shown || input.disabled || text.trim() === '') return false;
    this.#interrupt();
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

  /** Answers a question about a tool, and says whether the answer went out. */
  answer(id: string, allow: boolean, remember: boolean): boolean {
    if (!this.#approvals().some((a) => a.id === id && isOpen(a))) return false;
    if (this.#second.send({ type: 'approval.answer', payload: { approvalId: id, allow, ...(remember && { remember }) } }) === null) return false;
    this.#dispatch({ type: 'answered', id, allow });
    return true;
  }

  #approvals(): readonly Approval[] {
    const { turns, open } = this.model.value.talk;
    return turns.find((t) => t.id === open)?.approvals ?? [];
  }

  showArtifacts(open: boolean): void {
    this.viewer.value = { ...this.viewer.value, open };
  }

  chooseArtifact(id: number): void {
    this.viewer.value = choose(this.viewer.value, this.model.value.talk.artifacts, id);
  }

  runMockedTurn(): void {
    if (helm(this.model.value).mocked.disabled) return;
    if (!this.#send({ type: 'mocked.turn.trigger', payload: {} })) return;
    this.#dispatch({ type: 'triggered' });
  }

  /** The page is out of sight. */
  hidden(): void {
    this.#covered = true;
    this.#look();
  }

  /** The page can be seen again. */
  visible(): void {
    this.#covered = false;
    this.#look();
  }

  /** Nothing is captured where the talk control cannot be seen. */
  #look(): void {
    const inSight = !this.#covered && this.view.value === 'talk';
    if (!inSight) this.#hold.lose('hidden');
    this.#handsFree.sight(inSight);
    if (!inSight) this.#ear.close();
  }

  online(): void {
    if (this.#line.status.retryAt !== null) this.#line.tryNow();
  }

  setTurns(turns: Turns): void {
    if (turns === this.model.value.turns) return;
    this.#browser.setAddress(`?turns=${turns}`);
    this.#line.disconnect();
    this.#ear.close();
    this.#set({ turns, microphone: 'closed' });
    void this.#meetAgents();
    this.#line.connect();
  }

  change(change: Partial<Settings>): void {
    const settings = { ...this.settings.value, ...change };
    this.#settings.value = settings;
    writeSettings(this.#browser.storage, settings);
    if (change.handsFree !== undefined) this.#handsFree.set(change.handsFree);
    if (change.deviceId !== undefined && !this.#hold.held) {
      this.#ear.useDevice(change.deviceId);
      this.#handsFree.comeBack();
    }
    if (change.speak !== undefined) this.#speaker.mute(!change.speak);
    if (change.speak) this.pressed();
    if (change.speak || change.sensitivity || change.pause || change.follow) this.#terms.agree();
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
        return void this.#ear.open(this.settings.value.deviceId);
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
    if (connection.state !== 'connected') {
      this.#hold.forget();
      this.#terms.settle();
      // It is open where it can be heard, or will be in a moment.
      if (connection.state !== 'connecting' && connection.retryAt === null) this.#ear.close();
    }
    const action = this.#statusAction(connection);
    if (action && action.type !== 'kept') this.#speaker.reset();
    if (action?.type === 'closed by the user') this.#speaker.leave();
    // What it was asked for may not be there any more.
    if (connection.cause?.kind === 'refused') void this.refreshEngines();
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
    if (event.type === 'error' && this.#terms.refusedAsYet(event.payload)) return;
    const back = event.type === 'session.ready' && this.model.value.talk.turns.length > 0;
    if (event.type === 'session.ready') this.#again = 'recovered' in event.payload && event.payload.recovered;
    // An answer that is cut is silent before anything of it is drawn.
    if (event.type === 'response.cancelled') this.#speaker.ended(event.payload.responseId, true);
    const { artifacts, status } = this.model.value.talk;
    this.#dispatch({ type: 'server', event });
    switch (event.type) {
      case 'session.ready':
        this.#onAgent(event.payload);
        this.#onReady(event.payload);
        break;
      case 'session.state':
        this.#onState(event.payload.value);
        break;
      case 'response.created':
        this.#speaker.expect();
        break;
      case 'response.audio.delta':
        this.#speaker.add(event.payload);
        break;
      case 'response.completed':
        if ('responseId' in event.payload && event.payload.responseId) this.#speaker.ended(event.payload.responseId, false);
        break;
      case 'status':
        this.#onStatusOfAgent(status);
        break;
      case 'artifact':
        this.viewer.value = onArtifact(this.viewer.value, artifacts);
        break;
      case 'approval.request':
        this.#onQuestion(event.payload.approvalId);
    }
    if (event.type === 'session.ready' || event.type === 'session.state') this.#lastTurn = this.#browser.timers.now();
    if (event.type === 'session.ready' && !('recovered' in event.payload && event.payload.recovered)) this.#fresh = false;
    if (back) void this.refreshEngines(); // another gateway may have come up in its place
  }

  /** Where the gateway hears that somebody speaks, an answer that is not over waits until it knows whether they are words. */
  #onState(state: State): void {
    if (state === 'listening') void this.#speaker.pause();
    else this.#speaker.resume();
    if (state === 'idle') this.#terms.agree();
  }

  #onReady({ sessionId, recovered = false }: { sessionId: string; recovered?: boolean }): void {
    this.#terms.settle();
    const played = takePlayed(this.#browser.tabStorage);
    if (sessionId !== this.#session) {
      this.#speaker.reset();
      this.#terms.renew();
    }
    this.#session = sessionId;
    if (recovered) this.#speaker.resumed(this.#fresh, played?.sessionId === sessionId ? played : null);
    else this.#terms.agree();
    this.#handsFree.comeBack();
  }

  #onAgent(ready: object): void {
    if (this.#asked === '' || !('agent' in ready)) return;
    if (ready.agent === this.#asked) this.change({ agent: this.#asked });
    this.#asked = '';
  }

  /** It goes when no other follows. A screen reader hears of one now and then, and not what the phase has said already. */
  #onStatusOfAgent(before: Status | null): void {
    const { timers } = this.#browser;
    timers.clear(this.#statusTimer);
    this.#statusTimer = timers.set(() => this.#dispatch({ type: 'status over' }), statusFor);
    const { status } = this.model.value.talk;
    if (!status || this.#again || (before?.verb === status.verb && before.detail === status.detail && before.source === status.source) || status.action === 'thinking') return;
    if (timers.now() - this.#statusTold < betweenStatuses || listening(this.model.value) === 'live') return;
    this.#statusTold = timers.now();
    this.#announcer.tell([`${this.nameOf(status)} ${status.verb} ${status.detail}`.trim()]);
  }

  #onQuestion(id: string): void {
    const answer = this.#answers.get(id);
    if (answer) this.#dispatch({ type: 'answered', id, allow: answer === 'allowed' });
    else if (!this.#again) this.#browser.vibrate();
  }

  /** Everything that was missed is here. */
  #onCaughtUp(): void {
    this.#again = false;
    const { talk } = this.model.value;
    if (this.#fresh) this.#second.send({ type: 'history.get', payload: {} });
    this.#fresh = false;
    this.#speaker.caughtUp();
    this.#endSilenced();
    this.#terms.agree();
    if (talk.clearing) this.#second.send({ type: 'history.clear', payload: {} });
    // The gateway may still listen to a hold that was lost. One that was let go is past that, and does not mind.
    if (talk.detects) this.#breakOff('connection');
    else if (talk.phase === 'listening' && !talk.held) this.#send({ type: 'input_audio.clear', payload: {} });
    this.#dispatch({ type: 'caught up' });
  }

  #dispatch(action: Action): void {
    if (action.type === 'held') {
      this.#interrupt();
      this.#second.listen?.();
      // A gateway that listens by itself waits for speech, and would let the answer go on until then.
      if (this.model.value.talk.detects && interruptible(this.model.value)) this.#send({ type: 'response.cancel', payload: { ...this.#speaker.unsettled } });
      this.levels.clear();
      this.#browser.vibrate();
    }
    const talk = this.#reduced(action);
    if (talk !== this.model.value.talk) this.#set({ talk });
    if (this.#isSecond) this.#deadlines.watch(this.#approvals());
    if (action.type === 'too short' || action.type === 'discarded' || action.type === 'hold lost') this.#endSilenced();
  }

  #reduced(action: Action): Model['talk'] {
    const { timers, steady } = this.#browser;
    return reduce(this.model.value.talk, action, { clock: timers.now(), steady: steady(), again: this.#again, aloud: this.#isAloud });
  }

  #set(change: Partial<Model>): void {
    const before = this.model.value;
    this.#model.value = { ...before, ...change };
    // A page that is loaded again hears what it has told before.
    this.#announcer.tell(this.#again && this.#fresh ? connectionTold(before, this.#model.value) : announcements(before, this.#model.value));
  }

  async #findDevices(): Promise<void> {
    this.#devices.value = await this.#browser.inputDevices();
  }
}

/** A screen reader is not to speak of nothing else. */
const betweenStatuses = 2000;

function isClosed(cause: Cause | null, code: number): boolean {
  return cause?.kind === 'closed' && cause.code === code;
}
