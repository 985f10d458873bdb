import type { JSX } from 'preact';
import { plain, shapes } from '../Pennant';

const frame = <path d="M2.75 1.75h15.5v10.5H2.75z" fill="none" stroke="currentColor" stroke-width="1.5" />;
const halved = (
  <>
    {frame}
    <path d="M2 1v12h17z" fill="currentColor" />
  </>
);
const quartered = (
  <>
    {frame}
    <path d="M2 1h8.5v6H2zM10.5 7H19v6h-8.5z" fill="currentColor" />
  </>
);

// Those of Pennant, and those that only sources have: remote ones by their colours, then by a second shape.
const flags: Record<string, JSX.Element> = {
  ...shapes,
  midi: plain,
  posted: plain,
  vela: <path d="M2.75 1.75h15.5v10.5H2.75z" fill="currentColor" />,
  ...Object.fromEntries(['r1', 'r2', 'r3', 'r4', 'r5', 'r6'].map((r) => [r, halved])),
  r1b: quartered,
  r4b: quartered,
};

const box = '0 0 20 14';

/** Every shape once, for marks that are only to be pointed to. */
export function FlagSprite(): JSX.Element {
  return (
    <svg class="unseen" aria-hidden="true" focusable="false">
      {Object.entries(flags).map(([identity, shape]) => (
        <symbol key={identity} id={`flag-${identity}`} viewBox={box}>
          <path d="M1 0v14" stroke="currentColor" stroke-width="1.5" />
          {shape}
        </symbol>
      ))}
    </svg>
  );
}

/** Whose it is. The name stands beside it, or in its label. */
export function Flag({ identity }: { identity: string }): JSX.Element {
  return (
    <svg class="pennant" data-identity={identity} viewBox={box} aria-hidden="true" focusable="false">
      <use href={flagOf(identity)} />
    </svg>
  );
}

/** Where the sprite has it. */
export function flagOf(identity: string): string {
  return `#flag-${Object.hasOwn(flags, identity) ? identity : 'posted'}`;
}
