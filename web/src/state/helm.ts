import { isOpen } from './approvals';
import { cannotListen, listening, type Listening } from './handsfree';
import { agentName, connectionWord, faultOf, phaseWords, type Fault, type Model } from './view';
import { running, waits, type Unsent } from './talk';

export type ControlShape = 'microphone' | 'microphone struck' | 'shell';
export type RingLook = 'ticks' | 'dashed' | 'waiting' | 'travelling' | 'level';

export interface Helm {
  /** Which phase colours it. */
  tone: 'idle' | 'listening' | 'thinking' | 'speaking' | 'bad';
  /** The word over the line: the phase, or what keeps the control off. */
  word: string;
  title: string;
  small: string;
  /** Whether the title is what was said and not sent: pale, with Dismiss. */
  unsent: boolean;
  /** Whether what the agent says that it does may stand in the title's place. */
  told: boolean;
  /** "or hold Space" is told only where it is true. */
  spaceHint: boolean;
  control: {
    shape: ControlShape;
    ring: RingLook;
    label: string;
    /** A state of the control, not another name of it; undefined where it is none. */
    pressed: boolean | undefined;
    disabled: boolean;
    /** Why it is disabled, or how it is used. */
    description: string;
  };
  mocked: { disabled: boolean; why: string };
  /** The typed input; shown false where there is none, and where its place is taken. */
  input: { shown: boolean; disabled: boolean; why: string };
  /** A new conversation in the same session. */
  clear: { shown: boolean; disabled: boolean; why: string };
  /** The switch of the page that listens by itself; on says whether it is, and not whether it should be. */
  handsFree: { shown: boolean; on: boolean; disabled: boolean; why: string };
  /** Whether it listens by itself now. */
  live: boolean;
  stop: { word: 'Discard' | 'Cancel' | 'Stop'; disabled: boolean; why: string };
  timed: boolean;
}

const howToTalk = 'Hold the Space bar or this button while you speak; or press Enter to start, and again to send. Escape cancels.';
const howToInterrupt = 'Speaking over the answer ends it, and begins your next turn. Escape stops the answer.';
const howToTap = 'Press to start, press again to send. Escape cancels.';
const howToPause = 'Press to pause listening, and again to go on. While you hold it, you talk until you let go. Escape stops the answer.';
const howToOpen = 'Press to open the microphone. Then just talk.';
const howToShell = 'No microphone: this sends placeholder audio. Hold it, or press Enter to start, and again to send. Escape cancels.';

const whyUnsent: Record<Unsent, string> = {
  focus: 'Not sent, because the page lost focus.',
  hidden: 'Not sent, because the page was hidden.',
  pointer: 'Not sent, because the hold was broken off.',
  microphone: 'Not sent, because the microphone went away.',
  connection: 'Not sent, because the connection was lost.',
  paused: 'Not sent, because listening was paused.',
  busy: 'Not sent, because a turn was still running.',
  refused: 'Not sent, because the gateway did not take it.',
};

/** In agent turns, where a keyboard does as well. */
const typeMeanwhile = ' You can type meanwhile.';

const faultWords: Record<Fault, { title: string; small: string }> = {
  refused: { title: 'The browser refused the microphone', small: 'Allow it beside the address bar, then try again.' },
  none: { title: 'No microphone found', small: 'Plug one in, then try again.' },
  'in use': { title: 'Another program is using the microphone', small: 'Close it there, then try again.' },
  insecure: { title: 'No microphone at this address', small: 'Browsers give it only to pages from https or from this machine.' },
  broken: { title: 'The microphone did not start', small: 'Try again, or choose another in the settings.' },
};

/** Whether a turn is active, which is what the stop control stops. */
export function turnActive({ talk }: Model): boolean {
  return talk.held !== null || inFlight(talk) || talk.phase !== 'idle';
}

function inFlight(talk: Model['talk']): boolean {
  return talk.inFlight !== null || talk.phase === 'thinking' || talk.phase === 'speaking';
}

/** Whether a hold, or typed words, would end what runs now. Nothing does while the user's own words are still being recognised. */
export function interruptible({ talk }: Model): boolean {
  return running(talk);
}

/** Whether a hold may begin a turn now. */
export function mayTalk(model: Model): boolean {
  return off(model) === null || (isThere(model) && interruptible(model));
}

function isThere({ connection, talk }: Model): boolean {
  return connection.state === 'connected' && talk.sessionId !== null && !talk.kept;
}

/** Why nothing can be said or run now, first reason first; null when it can. */
function off(model: Model): string | null {
  const { connection, talk } = model;
  if (connection.state !== 'connected') return 'Off: there is no connection to the gateway.';
  if (talk.sessionId === null || talk.kept) return 'Off: the session is not ready yet.';
  if (inFlight(talk)) {
    return talk.inFlight === 'mocked' || model.turns === 'deterministic'
      ? 'Off: a mocked turn is in flight. Wait, or cancel it.'
      : 'Off: the answer is still running. Wait, or stop the answer.';
  }
  return null;
}

/** What the helm shows. Everything that is disabled, is disabled here. */
export function helm(model: Model): Helm {
  const { talk, turns } = model;
  const shell = turns === 'deterministic';
  const fault = faultOf(model);
  const blocked = off(model);
  const over = interruptible(model);
  const there = isThere(model);
  const ears = listening(model);
  const active = there && turnActive(model);
  const refused = fault !== null && !talk.inFlight;
  const heard = ears !== 'off' && talk.phase === 'listening' && !waits(talk);
  const stopWord = talk.held || heard ? 'Discard' : shell || talk.inFlight === 'mocked' ? 'Cancel' : 'Stop';
  // Listening can be paused whatever runs.
  const free = there && (over || ears === 'live' || ears === 'paused') ? null : blocked;
  const controlOff = free ?? (fault ? `Off: ${faultWords[fault].title.toLowerCase()}.` : null);
  return {
    ...words(model, there, refused ? fault : null),
    control: {
      shape: shape(model, there, refused),
      ring: ring(model, there, refused),
      label: controlLabel(model),
      pressed: ears === 'off' ? talk.held !== null : ears === 'closed' ? undefined : ears === 'paused',
      disabled: controlOff !== null && talk.held === null,
      description: controlOff ?? howTo(model, over),
    },
    mocked: {
      disabled: blocked !== null || talk.held !== null,
      why: talk.held ? 'Off while the control is held.' : (blocked ?? ''),
    },
    input: {
      shown: !shell && talk.held === null,
      // What cannot be taken now comes back as unsent; the caret stays where it is.
      disabled: !there || (blocked !== null && !talk.interrupt),
      why: !there || !talk.interrupt ? (blocked ?? '') : '',
    },
    clear: {
      shown: !shell,
      disabled: blocked !== null || talk.held !== null || talk.turns.length === 0 || talk.clearing,
      why: blocked ?? (talk.held ? 'Off while the control is held.' : talk.turns.length === 0 ? 'Off: nothing has been said.' : ''),
    },
    handsFree: {
      shown: !shell,
      on: model.handsFree !== 'off' && !cannotListen(model),
      disabled: cannotListen(model),
      why: cannotListen(model) ? 'Off: this gateway cannot hear where speech begins and ends.' : 'Listens by itself. Speech interrupts the answer.',
    },
    live: there && !refused && ears === 'live',
    stop: { word: stopWord, disabled: !active, why: active ? '' : 'Off: no turn is active.' },
    timed: active && (talk.held !== null || talk.phase !== 'idle'),
  };
}

function howTo(model: Model, over: boolean): string {
  const ears = listening(model);
  if (ears !== 'off') return ears === 'closed' ? howToOpen : howToPause;
  if (over) return howToInterrupt;
  return model.turns === 'deterministic' ? howToShell : model.tapInsteadOfHold ? howToTap : howToTalk;
}

function waiting({ connection, talk }: Model): boolean {
  return (
    connection.state === 'connecting' ||
    connection.retryAt !== null ||
    (connection.state === 'connected' && (talk.sessionId === null || talk.kept))
  );
}

function shape(model: Model, there: boolean, refused: boolean): ControlShape {
  if (model.turns === 'deterministic') return 'shell';
  // Struck where it stays so until somebody acts; not where it comes back by itself or was never the microphone's fault.
  const gone = !there && !waiting(model) && model.connection.state !== 'error';
  return gone || (there && (refused || listening(model) === 'paused') && !model.talk.held) ? 'microphone struck' : 'microphone';
}

function ring(model: Model, there: boolean, refused: boolean): RingLook {
  const { talk } = model;
  if (!there) return waiting(model) ? 'waiting' : 'dashed';
  if (talk.phase === 'thinking' && !talk.held) return 'travelling';
  if (refused) return 'dashed';
  if (model.turns === 'deterministic') return 'dashed';
  if (model.microphone === 'opening') return 'waiting';
  return talk.held || isSounding(model) || listening(model) === 'live' ? 'level' : 'ticks';
}

/** It stays the same while held: that the control is pressed is a state of it, not another name. */
function controlLabel(model: Model): string {
  const { turns, tapInsteadOfHold: tap } = model;
  const ears = listening(model);
  if (ears === 'closed') return 'Open the microphone';
  if (ears !== 'off') return 'Pause listening';
  if (interruptible(model)) return tap ? 'Press to interrupt' : 'Hold to interrupt';
  if (turns === 'deterministic') return `Control shell, ${tap ? 'press' : 'hold'} to send placeholder audio`;
  return tap ? 'Press to talk' : 'Hold to talk';
}

type Words = Pick<Helm, 'tone' | 'word' | 'title' | 'small' | 'unsent' | 'told' | 'spaceHint'>;

function words(model: Model, there: boolean, fault: Fault | null): Words {
  const plain = { unsent: false, told: false, spaceHint: false };
  if (model.talk.unsent && !model.talk.held) return { ...plain, ...unsentWords(model, there) };
  if (!there) return { ...plain, ...connectionWords(model) };
  const { talk } = model;
  const tone = talk.held ? 'listening' : talk.phase;
  const word = phaseWords[tone];
  if (fault) {
    const { title, small } = faultWords[fault];
    return { ...plain, tone: 'bad', word: 'Microphone off', title, small: small + typeMeanwhile };
  }
  if (talk.held) return { ...plain, tone, word, title: model.tapInsteadOfHold ? 'Press again to send' : 'Let go anywhere to send', small: '' };
  if (isAsked(model)) {
    return { ...plain, tone, word, title: `${agentName(model)} waits for your answer`, small: 'Allow or deny it, in the conversation above.' };
  }
  if (waits(talk)) return { ...plain, tone, word, title: 'The answer waits', small: 'It goes on, if that was no speech.' };
  if (inFlight(talk)) return { ...plain, tone, word, ...inFlightWords(model), told: true };
  if (model.microphone === 'opening' && model.turns === 'agent') {
    return { ...plain, tone, word, title: 'Waiting for the microphone', small: 'Allow it, if the browser asks.' };
  }
  const ears = listening(model);
  const still = { ...plain, tone, word, ...(ears === 'off' ? idleWords(model) : earWords(model, ears)) };
  // Others are at work while nobody talks: their status has the title's place.
  return talk.status?.source === undefined ? still : { ...still, small: still.title, spaceHint: false, told: true };
}

/** Whether the answer that runs is heard. */
function isSounding({ talk }: Model): boolean {
  return talk.phase === 'speaking' && !!talk.turns.find((t) => t.id === talk.open)?.sound?.marks.length;
}

/** Whether the agent asks for something, which nothing but an answer ends. */
function isAsked({ talk }: Model): boolean {
  return talk.turns.find((t) => t.id === talk.open)?.approvals.some(isOpen) === true;
}

function unsentWords(model: Model, there: boolean): Omit<Words, 'spaceHint' | 'told'> {
  const { text, why } = model.talk.unsent!;
  const base = there
    ? { tone: model.talk.phase, word: phaseWords[model.talk.phase] }
    : { tone: connectionWords(model).tone, word: connectionWord(model.connection) };
  return { ...base, title: text || 'Nothing was sent', small: whyUnsent[why], unsent: true };
}

function earWords({ talk, tapInsteadOfHold: tap }: Model, ears: Exclude<Listening, 'off'>): { title: string; small: string } {
  switch (ears) {
    case 'closed':
      if (talk.note === 'microphone gone') return { title: 'The microphone went away', small: 'Press to open it again.' };
      return { title: 'Press once, then just talk', small: 'The microphone is not open yet.' };
    case 'coming':
      return { title: 'One moment', small: 'Then just talk.' };
    case 'paused':
      return { title: 'Listening is paused', small: tap ? 'Press to go on' : 'Press to go on, or hold to talk' };
    case 'live':
      if (talk.phase === 'listening') return { title: 'Listening', small: 'Go on. A pause ends your turn.' };
      return { title: 'Just talk', small: 'Vela listens by itself. Press the ring to pause listening.' };
  }
}

/** How what runs is interrupted, if it can be. */
function interruptWords(model: Model): string {
  if (!interruptible(model)) return 'Wait, or stop the answer';
  const ears = listening(model);
  if (ears === 'live') return 'Speak to interrupt';
  if (ears === 'closed') return 'Press to open the microphone';
  return model.tapInsteadOfHold ? 'Press to interrupt' : 'Hold to interrupt';
}

function inFlightWords(model: Model): { title: string; small: string } {
  const { talk, turns } = model;
  if (turns === 'deterministic') {
    return { title: 'Mocked turn in flight', small: 'The control shell works again when the turn ends or is cancelled.' };
  }
  const over = interruptible(model);
  const small = interruptWords(model);
  if (talk.inFlight === 'mocked') {
    return { title: 'Mocked turn in flight', small: over ? small : 'You can talk again when the turn ends or is cancelled.' };
  }
  if (talk.phase === 'speaking' && model.blocked && isSounding(model)) return { title: 'Answering', small: 'Press anywhere to hear the answer' };
  if (talk.phase === 'speaking') return { title: 'Answering', small };
  return { title: talk.phase === 'thinking' ? 'Working on it' : 'Recognising what you said', small };
}

function idleWords(model: Model): { title: string; small: string; spaceHint: boolean } {
  const { talk, turns, tapInsteadOfHold: tap } = model;
  if (turns === 'deterministic') {
    const verb = tap ? 'Pressing' : 'Holding';
    return {
      title: 'Control shell, no microphone',
      small: `Deterministic turns. ${verb} this sends placeholder audio, not your voice.`,
      spaceHint: false,
    };
  }
  const talkNow = tap ? 'Press to talk' : 'Hold to talk';
  switch (talk.note) {
    case 'microphone on':
      return { title: `The microphone is on. ${talkNow}.`, small: tap ? 'Press again to send' : 'or hold Space, let go to send', spaceHint: !tap };
    case 'nothing recognised':
      return { title: 'Nothing was recognised', small: `${talkNow} and say it again.`, spaceHint: false };
    default:
      return { title: talkNow, small: tap ? 'press again to send' : 'or hold Space, let go to send', spaceHint: !tap };
  }
}

const whereItWas = 'What was said stays here. The conversation goes on where it was.';

function connectionWords(model: Model): { tone: Helm['tone']; word: string; title: string; small: string } {
  const { connection, talk } = model;
  const word = connectionWord(connection);
  const said = talk.turns.length > 0;
  if (connection.cause?.kind === 'said') return { tone: 'idle', word, title: connection.cause.strong, small: said ? 'What was said stays here.' : '' };
  // A page that was just loaded has lost nothing, though its session is kept.
  if (talk.kept && (connection.retryAt !== null || (talk.sessionId !== null && (waiting(model) || connection.cause?.kind === 'socket')))) {
    return { tone: 'idle', word, title: 'Connection lost', small: said ? whereItWas : 'The session goes on where it was.' };
  }
  if (connection.cause?.kind === 'closed' && connection.cause.code === 4002) {
    return { tone: 'idle', word, title: 'Gone to another window', small: 'What was said stays here.' };
  }
  if (connection.retryAt !== null) {
    return { tone: 'idle', word, title: 'Connection lost', small: said ? 'What was said stays here.' : 'The page comes back by itself.' };
  }
  switch (connection.state) {
    case 'connecting':
    case 'connected':
      return { tone: 'idle', word: 'Connecting', title: 'Connecting', small: 'Waiting for the session to be ready.' };
    case 'error':
      return { tone: 'bad', word, title: 'Connection error', small: said ? 'What was said stays here. Connect again to go on.' : 'Connect again to go on.' };
    case 'disconnected':
      return { tone: 'idle', word, title: 'Disconnected', small: talk.kept ? whereItWas : 'The session was not kept. A new one starts empty.' };
    default:
      return { tone: 'idle', word, title: 'Not connected', small: 'The page has no connection to the gateway.' };
  }
}
