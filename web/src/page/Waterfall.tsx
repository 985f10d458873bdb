import type { JSX } from 'preact';
import type { Turn } from '../state/turn';
import { full } from '../state/view';
import { Icon } from './Icon';
import { narrow } from './wide';

const names = ['Recognise', 'First word', 'First sound'] as const;

const until = { Recognise: 'the transcript', 'First word': 'the first word', 'First sound': 'the first sound' };

interface Stage {
  name: (typeof names)[number];
  tone: 'listening' | 'thinking' | 'speaking';
  from: number;
  to: number;
}

/** The stages of an agent's turn: as the gateway measured them, and until it has, as this page saw their events arrive. */
export function stages(turn: Turn): Stage[] {
  if (turn.kind === 'mocked' || turn.kind === 'shell') return [];
  const { metrics } = turn;
  const [recognised, word, sound] = metrics ? [metrics.sttMs, metrics.firstTokenMs, metrics.firstAudioMs] : seen(turn);
  const asked = recognised ?? 0;
  const all: Stage[] = [];
  if (recognised !== undefined) all.push({ name: 'Recognise', tone: 'listening', from: 0, to: recognised });
  if (word !== undefined) all.push({ name: 'First word', tone: 'thinking', from: asked, to: asked + word });
  if (sound !== undefined) all.push({ name: 'First sound', tone: 'speaking', from: asked + (word ?? 0), to: asked + sound });
  return all;
}

/** What was recognised, from letting go; the first word and the first sound, from what was recognised. */
function seen({ released, finalAt, firstWordAt, firstSoundAt }: Turn): (number | undefined)[] {
  if (released === null || finalAt === null) return [];
  const since = (at: number | null): number | undefined => (at === null ? undefined : at - finalAt);
  return [finalAt - released, since(firstWordAt), since(firstSoundAt)];
}

/** A round length for the axis, which divides well by four: a quarter of less than 20 ms is no whole number of them. */
export function axis(ms: number): number {
  const least = Math.max(ms, 20);
  const unit = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 4, 10].map((n) => n * unit).find((length) => length >= least)!;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;

/** Where the clock of a turn begins. */
function beginning({ kind, released, metrics }: Turn): string {
  if (kind === 'text') return 'sending';
  // Where nothing was held, and where it is told again, only the gateway knows.
  return released !== null || !metrics ? 'letting go' : 'the end of speech';
}

const milliseconds = (ms: number): string => Math.round(ms).toLocaleString('en');

/** Who measured, what of it was the gateway's own, and how long all of it was. */
function keyWords({ metrics }: Turn, recogniser: string | null, recognised: boolean): string {
  const by = recogniser && recognised ? ` Recognised by ${full(recogniser)}` : '';
  if (!metrics) return `As seen by this page.${by}`;
  return `Vela itself ${milliseconds(metrics.gatewayMs)} ms, the whole turn ${seconds(metrics.totalMs)}.${by}`;
}

export function Waterfall({ turn, newest, recogniser }: { turn: Turn; newest: boolean; recogniser: string | null }): JSX.Element | null {
  const all = stages(turn);
  const last = all.at(-1);
  if (!last) return null;
  const length = axis(last.to);
  const spoken = all.map((s) => `${s.name} after ${milliseconds(s.to)} milliseconds`).join(', ');
  const over = turn.done || turn.cut !== null || turn.metrics !== null;
  return (
    <details class="waterfall" open={newest && !narrow.value}>
      <summary>
        <Icon name="open" small />
        <span>
          <b>{seconds(last.to)}</b> from {beginning(turn)} to {until[last.name]}
        </span>
      </summary>
      <div class="stages" role="img" aria-label={`Latency of this turn: ${spoken}.`}>
        {names.map((name) => {
          const stage = all.find((s) => s.name === name);
          return (
            <>
              <span>{name}</span>
              <div class="track">
                {stage && (
                  <i
                    data-phase={stage.tone}
                    style={{ left: `${(100 * stage.from) / length}%`, width: `${Math.max(0.5, (100 * (stage.to - stage.from)) / length)}%` }}
                  />
                )}
              </div>
              <span class="value">{stage ? `${milliseconds(stage.to - stage.from)} ms` : over || name === 'Recognise' ? 'none' : ''}</span>
            </>
          );
        })}
        <span />
        <div class="axis">
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <span key={part}>{milliseconds(part * length) + (part === 1 ? ' ms' : '')}</span>
          ))}
        </div>
        <span />
      </div>
      <p class="key">{keyWords(turn, recogniser, all[0]!.name === 'Recognise')}</p>
    </details>
  );
}
