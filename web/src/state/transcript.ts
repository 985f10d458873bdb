import { answerer } from './announce';
import { outcomeWords } from './approvals';
import { stepWords, type Step } from './steps';
import type { Cut, Turn } from './turn';
import type { Model } from './view';

const cutWords: Record<Cut, string> = {
  cancelled: 'you stopped this',
  interrupted: 'you interrupted',
  lost: 'the connection was lost',
  failed: 'the answer broke off',
  stopped: 'the gateway stopped',
};

/** Why an answer is not whole, and how much of it was heard, where it was spoken. */
export function cutText({ cut, sound }: Turn): string {
  if (!cut) return '';
  const seconds = sound && sound.playedMs !== null ? `, ${(sound.playedMs / 1000).toFixed(1)} s heard` : '';
  return cutWords[cut] + seconds;
}

/** The conversation as Markdown, as it is on the page. What was said is quoted, so that nothing in it becomes part of the document. */
export function transcript(model: Model): string {
  const { turns } = model.talk;
  const first = turns[0];
  const day = first ? new Date(first.at).toISOString().slice(0, 10) : '';
  return [`# Conversation${day && ` of ${day}`}`, ...turns.map((turn) => turnText(turn, model))].join('\n\n') + '\n';
}

function turnText(turn: Turn, model: Model): string {
  const parts: string[] = [];
  const time = new Date(turn.at).toISOString().slice(11, 16);
  if (turn.said !== '') parts.push(`**You**, ${time} UTC`, quoted(turn.said));
  const steps = turn.steps.map((step) => stepText(step, turn));
  if (turn.answer !== '' || turn.cut || steps.length > 0) parts.push(`**${answerer(turn, model)}**`);
  if (steps.length > 0) parts.push(steps.join('\n'));
  if (turn.answer !== '') parts.push(quoted(turn.answer));
  if (turn.cut) parts.push(`(${cutText(turn)})`);
  return parts.join('\n\n');
}

/** A tool that was used: what of its input says most, what came of it, and who allowed it. */
function stepText({ id, name, detail, state }: Step, { approvals }: Turn): string {
  const answer = approvals.find((a) => a.callId === id);
  const words = [state !== 'done' && stepWords[state], answer && outcomeWords[answer.outcome]].filter(Boolean).join(', ');
  return `- ${oneLine(name)}${detail && ` ${oneLine(detail)}`}${words && ` (${words})`}`;
}

const quoted = (text: string): string => text.replace(/^/gm, '> ');

const oneLine = (text: string): string => '`' + text.replace(/[`\s]+/g, ' ').trim() + '`';

/** Its name as a file, by the time of the first turn. */
export function transcriptName({ talk }: Model): string {
  const at = new Date(talk.turns[0]?.at ?? 0).toISOString();
  return `conversation-${at.slice(0, 10)}-${at.slice(11, 16).replace(':', '')}.md`;
}
