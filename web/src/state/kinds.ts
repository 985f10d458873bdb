import { isObject } from '../client/decode';

/** The kinds that signals are sorted into, in the order in which they are offered. */
export const kinds = ['text', 'thinking', 'tools', 'tasks', 'usage', 'errors', 'user', 'midi', 'custom', 'quiet'] as const;

export type Kind = (typeof kinds)[number];

export const kindWords: Record<Kind, string> = {
  text: 'Text',
  thinking: 'Thinking',
  tools: 'Tools',
  tasks: 'Tasks',
  usage: 'Usage',
  errors: 'Errors',
  user: 'User',
  midi: 'MIDI',
  custom: 'Custom',
  quiet: 'Heartbeats',
};

/** What a source says only to show that it is there is hidden unless asked for. */
export const shownAtFirst: ReadonlySet<Kind> = new Set(kinds.filter((k) => k !== 'quiet'));

const ofType: Record<string, Kind> = {
  text_delta: 'text',
  thinking: 'thinking',
  tool_call: 'tools',
  tool_result: 'tools',
  task_dispatch: 'tasks',
  completion: 'tasks',
  agent_state_change: 'tasks',
  token_usage: 'usage',
  error: 'errors',
};

export function kindOf(type: string, payload: Record<string, unknown>): Kind {
  const { _meta } = payload;
  if (isObject(_meta) && (_meta.heartbeat === true || _meta.cron === true)) return 'quiet';
  if (Object.hasOwn(ofType, type)) return ofType[type]!;
  if (type.startsWith('user.')) return 'user';
  return type.startsWith('midi.') ? 'midi' : 'custom';
}
