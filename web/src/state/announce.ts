import { listening, type Listening } from './handsfree';
import type { Turn } from './turn';
import { agentName, connectionWord, phaseWords, type Model } from './view';

/**
 * What a screen reader is told between two states of the page: finals, whole answers, phases and the connection; never partials, streaming
 * text or seconds. What went wrong is told by the banner, which is an alert. An open microphone that listens by itself would hear all of it, and
 * take it for the user: then no more is told than what the user cannot know otherwise.
 */
export function announcements(before: Model, after: Model): string[] {
  const always = [...connectionTold(before, after), ...ears(before, after)];
  const live = listening(after) === 'live';
  return [...always, ...turns(before, after, live), ...(live ? [] : [...artifacts(before, after), ...phase(before, after)])];
}

const earWords: Partial<Record<Listening, string>> = { live: 'Just talk. The microphone is open.', paused: 'Listening is paused' };

function ears(before: Model, after: Model): string[] {
  if (after.talk.note === 'microphone gone' && before.talk.note !== 'microphone gone') return ['The microphone went away'];
  const [was, is] = [listening(before), listening(after)];
  if (was === is) return [];
  if (is === 'off') return before.handsFree === 'off' ? [] : ['Hold to talk'];
  const told = earWords[is];
  return told ? [told] : [];
}

export function connectionTold(before: Model, after: Model): string[] {
  const ready = (m: Model): boolean => m.connection.state === 'connected' && m.talk.sessionId !== null && !m.talk.kept;
  if (!ready(before) && ready(after)) return ['Connected'];
  const { state } = after.connection;
  if (state === 'connecting' && before.connection.state !== state) return [connectionWord(after.connection)];
  return [];
}

function turns(before: Model, after: Model, live: boolean): string[] {
  if (before.talk.turns === after.talk.turns) return [];
  const told: string[] = [];
  const unchanged = new Set(before.talk.turns);
  for (const turn of after.talk.turns) {
    if (unchanged.has(turn) || turn.past) continue;
    const was = before.talk.turns.find((t) => t.id === turn.id);
    if (!was && turn.said && !live) told.push(`You said: ${turn.said}`);
    // What was spoken aloud has been heard.
    if (turn.done && !was?.done && turn.answer && !turn.sound?.playedMs) told.push(`${answerer(turn, after)}: ${turn.answer}`);
  }
  return told;
}

export function answerer({ kind, agent }: Turn, model: Model): string {
  return kind === 'mocked' || kind === 'shell' ? 'Mocked assistant' : agentName(model, agent);
}

function artifacts({ talk: before }: Model, { talk: after }: Model): string[] {
  if (before.artifacts === after.artifacts || after.artifacts.length === 0) return [];
  const last = before.artifacts.at(-1)?.id ?? 0;
  return after.artifacts.filter(({ id }) => id > last).map(({ title }) => `New artifact, ${title}`);
}

function phase(before: Model, after: Model): string[] {
  const to = after.talk.phase;
  if (to === before.talk.phase || after.talk.sessionId === null) return [];
  // Listening is felt, not spoken: the microphone is open and would hear it.
  if (to === 'listening' || after.talk.held) return [];
  return [phaseWords[to]];
}
