import type { StatusAction, StatusPayload } from '@vela/protocol';
import { oneLine } from './plain';

/** What the agent is doing, in words. */
export interface Status {
  action: StatusAction;
  verb: string;
  detail: string;
  /** When it began, in ms of the clock. */
  since: number;
  /** The id of who does it, where that is not the session's own agent: a source that is followed. */
  source?: string;
}

/** How long a status is shown when no other follows, in ms. */
export const statusFor = 5000;

const verbs: Record<StatusAction, string> = {
  thinking: 'Thinking',
  searching_files: 'Searching files',
  reading_file: 'Reading',
  writing_file: 'Writing',
  editing_file: 'Editing',
  web_search: 'Searching the web',
  executing_command: 'Running',
  analyzing: 'Analysing',
};

/**
 * Of an action that is not known, it can be said that there is one. An agent that is silent has a phrase to show for it, which is all there is to
 * say; while one of its tools runs, the detail of the same action is the tool's.
 */
export function statusOf({ source, ...payload }: StatusPayload, now: number, toolRuns = false): Status {
  const status = ownStatus(payload, now, toolRuns && source === undefined);
  return source === undefined ? status : { ...status, source };
}

function ownStatus({ action, detail = '' }: StatusPayload, now: number, toolRuns: boolean): Status {
  if (action === 'thinking' && detail !== '' && !toolRuns) return { action, verb: oneLine(detail), detail: '', since: now };
  const known = Object.hasOwn(verbs, action) ? action : 'thinking';
  return { action: known, verb: verbs[known], detail: oneLine(shortened(known, detail)), since: now };
}

function shortened(action: StatusAction, detail: string): string {
  if (action === 'executing_command') return shortCommand(detail);
  if (action === 'reading_file' || action === 'writing_file' || action === 'editing_file') return shortPath(detail);
  // What is searched for may look like a path, and is one only where it has nothing else in it.
  return action === 'searching_files' && /^[\w@.~-]*([/\\][\w@.~-]+)+[/\\]?$/.test(detail) ? shortPath(detail) : detail;
}

/** A path from its end: no more than its last two parts. */
export function shortPath(path: string): string {
  const parts = path.split(/[/\\]/).filter((p) => p !== '');
  return parts.length > 2 ? `.../${parts.slice(-2).join('/')}` : path;
}

/** A command from its beginning. */
export function shortCommand(command: string): string {
  return command.length > 30 ? `${command.slice(0, 27)}...` : command;
}
