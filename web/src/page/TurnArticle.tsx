import type { JSX } from 'preact';
import { answerer } from '../state/announce';
import type { App } from '../state/app';
import type { Step } from '../state/steps';
import type { Turn } from '../state/talk';
import { cutWords } from '../state/transcript';
import { timeWords } from './clock';
import { Icon } from './Icon';
import { Pennant } from './Pennant';
import { Waterfall } from './Waterfall';

/** What the agent did on the way to its answer: a knot of the halyard each. */
function Steps({ steps }: { steps: readonly Step[] }): JSX.Element {
  const states = { running: 'runs', done: '', failed: 'failed', unknown: 'not finished' };
  return (
    <ul class="steps">
      {steps.map((step) => (
        <li key={step.id} class="step" data-state={step.state}>
          <span>{step.name}</span>
          {step.detail !== '' && <code>{step.detail}</code>}
          <span class="took">{[states[step.state], step.took !== null && `${step.took.toLocaleString('en')} ms`].filter(Boolean).join(', ')}</span>
        </li>
      ))}
    </ul>
  );
}

export function TurnArticle({ app, turn, newest }: { app: App; turn: Turn; newest: boolean }): JSX.Element {
  const model = app.model.peek();
  const speaker = answerer(turn, model);
  const mocked = turn.kind === 'mocked' || turn.kind === 'shell';
  const identity = mocked ? 'mocked' : (model.engines?.agent?.name ?? '');
  const worked = turn.thought !== '' || turn.steps.length > 0;
  return (
    <article class="turn" data-turn={turn.id} data-kind={turn.kind} aria-label={`Turn at ${timeWords(turn.at)}`}>
      {turn.said !== '' && (
        <div class="side user">
          <time class="when" dateTime={new Date(turn.at).toISOString()}>
            {timeWords(turn.at)}
          </time>
          <i class="ring-mark" />
          <p class="who">You</p>
          <p class="said" data-who="user">
            {turn.said}
          </p>
        </div>
      )}
      {(turn.answer !== '' || turn.cut || worked) && (
        <div class="side agent">
          <Pennant identity={identity} hoisted />
          <p class="who">{speaker}</p>
          {turn.thought !== '' && (
            <details class="thought">
              <summary>
                <Icon name="open" small />
                Thoughts, no part of the answer
              </summary>
              <p>{turn.thought}</p>
            </details>
          )}
          {turn.steps.length > 0 && <Steps steps={turn.steps} />}
          <p class="said">
            <span data-who="agent">{turn.answer}</span>
            {turn.cut && <span class="cut">{cutWords[turn.cut]}</span>}
          </p>
        </div>
      )}
      <Waterfall turn={turn} newest={newest} recogniser={model.engines?.transcriber?.label ?? null} />
    </article>
  );
}
