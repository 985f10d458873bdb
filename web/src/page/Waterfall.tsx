import type { JSX } from 'preact';
import type { Turn } from '../state/talk';
import { Icon } from './Icon';

interface Stage {
  name: string;
  tone: 'listening' | 'thinking';
  from: number;
  to: number;
}

/** The stages of a spoken turn as this page saw their events arrive. A deterministic turn has none worth measuring. */
export function stages(turn: Turn): Stage[] {
  if (turn.kind !== 'voice' || turn.released === null || turn.finalAt === null) return [];
  const recognised = turn.finalAt - turn.released;
  const all: Stage[] = [{ name: 'Recognise', tone: 'listening', from: 0, to: recognised }];
  if (turn.firstWordAt !== null) {
    all.push({ name: 'First word', tone: 'thinking', from: recognised, to: turn.firstWordAt - turn.released });
  }
  return all;
}

/** A round length for the axis, which divides well by four. */
export function axis(ms: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(ms, 40)));
  return [1, 2, 4, 10].map((n) => n * unit).find((length) => length >= ms)!;
}

const milliseconds = (ms: number): string => Math.round(ms).toLocaleString('en');

export function Waterfall({ turn, newest, recogniser }: { turn: Turn; newest: boolean; recogniser: string | null }): JSX.Element | null {
  const all = stages(turn);
  const last = all.at(-1);
  if (!last) return null;
  const length = axis(last.to);
  const spoken = all.map((s) => `${s.name} after ${milliseconds(s.to)} milliseconds`).join(', ');
  return (
    <details class="waterfall" open={newest}>
      <summary>
        <Icon name="open" small />
        <span>
          <b>{(last.to / 1000).toFixed(2)} s</b> from letting go to {last.name === 'First word' ? 'the first word' : 'the transcript'}
        </span>
      </summary>
      <div class="stages" role="img" aria-label={`Latency of this turn: ${spoken}.`}>
        {all.map((stage) => (
          <>
            <span>{stage.name}</span>
            <div class="track">
              <i
                data-phase={stage.tone}
                style={{ left: `${(100 * stage.from) / length}%`, width: `${Math.max(0.5, (100 * (stage.to - stage.from)) / length)}%` }}
              />
            </div>
            <span class="value">{milliseconds(stage.to - stage.from)} ms</span>
          </>
        ))}
        {all.length === 1 && (
          <>
            <span>First word</span>
            <div class="track" />
            <span class="value">{turn.done || turn.cut ? 'none' : ''}</span>
          </>
        )}
        <span />
        <div class="axis">
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <span key={part}>{milliseconds(part * length) + (part === 1 ? ' ms' : '')}</span>
          ))}
        </div>
        <span />
      </div>
      {recogniser && <p class="key">As seen by this page. Recognised by {recogniser}.</p>}
    </details>
  );
}
