import type { JSX } from 'preact';
import type { App } from '../state/app';
import { listening } from '../state/handsfree';
import { recogniserLine } from '../state/view';

/** A sky that is the same each time: no random numbers, so that nothing moves between two visits. */
const sky = Array.from({ length: 90 }, (_, i) => {
  const spread = (n: number): number => (Math.sin((i + 1) * n) * 43758.5453) % 1;
  return { x: Math.abs(spread(12.9898)) * 1440, y: Math.abs(spread(78.233)) * 660, r: 0.5 + Math.abs(spread(39.425)) * 0.8 };
});

const stars = [
  [52, 10, 8],
  [200, 80, 5],
  [312, 214, 6.5],
  [349, 366, 4.5],
  [274, 474, 7],
  [0, 526, 8],
] as const;

function Sky(): JSX.Element {
  return (
    <>
      <svg class="sky" viewBox="0 0 1440 660" preserveAspectRatio="xMidYMid slice" aria-hidden="true">
        {sky.map(({ x, y, r }, i) => (
          <circle key={i} cx={x.toFixed(1)} cy={y.toFixed(1)} r={r.toFixed(1)} />
        ))}
      </svg>
      <svg class="sail" viewBox="-10 -2 370 540" aria-hidden="true">
        <path d={`M${stars.map(([x, y]) => `${x} ${y}`).join('L')}Z`} />
        <path class="rigging" d="M52 10 274 474M312 214 26 268" />
        {stars.map(([x, y, r]) => (
          <circle key={y} cx={x} cy={y} r={r} />
        ))}
      </svg>
    </>
  );
}

export function Empty({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const agent = model.engines?.agent;
  return (
    <div class="empty">
      <Sky />
      <h2>Say what you want done, and hear what is being done.</h2>
      {model.turns === 'agent' ? (
        <>
          {listening(model) === 'off' ? (
            <p>
              Hold the round control<span class="with-keys"> or the Space bar</span> while you speak. The transcript and the answer appear here.
            </p>
          ) : (
            <p>While the microphone is open, just speak. A pause ends your turn, and speech interrupts the answer.</p>
          )}
          {agent && !agent.available && <p class="engine">{`${agent.label} is not there${agent.why ? `: ${agent.why}` : ''}.`}</p>}
          <p class="engine" id="recogniser">
            {recogniserLine(model)}
          </p>
        </>
      ) : (
        <>
          <p>Deterministic turns are fixed. They use no microphone, no recogniser and no agent.</p>
          {!model.engines && model.connection.state !== 'not connected' && (
            <p class="engine">The gateway did not say what it has, so deterministic turns are assumed.</p>
          )}
        </>
      )}
    </div>
  );
}
