import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import type { Helm } from '../state/helm';
import { listenToHold } from './holding';
import { Icon } from './Icon';
import { LevelRing } from './LevelRing';

const centre = 72;

/** The ticks of the ring at rest: every sixth longer, the one at twelve o'clock being where the newest level appears. */
const restingTicks = Array.from({ length: 72 }, (_, i) => {
  const angle = (i * Math.PI) / 36;
  const outer = i % 6 === 0 ? 61 : 58.5;
  const point = (r: number): string => `${(centre + r * Math.sin(angle)).toFixed(1)} ${(centre - r * Math.cos(angle)).toFixed(1)}`;
  return `M${point(56)}L${point(outer)}`;
}).join('');

export function TalkControl({ app, view }: { app: App; view: Helm }): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => listenToHold(button.current!, app), [app]);
  const { control } = view;
  return (
    <div class="ring" data-ring={control.ring}>
      <svg viewBox="0 0 144 144" aria-hidden="true" focusable="false">
        <path class="ticks" d={restingTicks} />
        <circle class="dashes" cx={centre} cy={centre} r="58" />
        <path class="arc" d="M72 13a59 59 0 0 1 59 59" />
      </svg>
      {control.ring === 'level' && <LevelRing key={`${view.tone} ${view.live}`} app={app} />}
      <button
        id="talk"
        ref={button}
        type="button"
        class="control"
        data-shape={control.shape === 'shell' ? 'shell' : 'round'}
        disabled={control.disabled}
        aria-label={control.label}
        aria-pressed={control.pressed}
        aria-describedby="talk-why"
      >
        {control.shape === 'shell' ? (
          <span aria-hidden="true">
            control
            <br />
            shell
          </span>
        ) : (
          <Icon name={control.shape === 'microphone' ? 'microphone' : 'struck'} />
        )}
      </button>
    </div>
  );
}
