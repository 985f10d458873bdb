import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { isOpen, outcomeWords, type Approval } from '../state/approvals';
import { stepWords, type Step } from '../state/steps';
import { Icon } from './Icon';

/** What the agent did on the way to its answer: a knot of the halyard each. */
export function Steps({ steps, approvals }: { steps: readonly Step[]; approvals: readonly Approval[] }): JSX.Element {
  return (
    <ul class="steps" aria-label="What was done">
      {steps.map((step) => (
        <StepRow key={step.id} step={step} approval={approvals.find((a) => a.callId === step.id)} />
      ))}
    </ul>
  );
}

function StepRow({ step, approval }: { step: Step; approval: Approval | undefined }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <li class="step" data-state={step.state}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="name">{step.name}</span>
          {step.detail !== '' && <code>{step.detail}</code>}
          <span class="took">
            {stepWords[step.state]}
            {step.took !== null && step.took > 0 && <span class="ms">, {step.took.toLocaleString('en')} ms</span>}
            {approval && `, ${outcomeWords[approval.outcome]}`}
          </span>
          <Icon name="open" small />
        </summary>
        {open && (
          <div class="evidence-of">
            <Evidence label="In" text={step.input} none="Nothing went in." />
            <Evidence label="Out" text={step.output} none={nothingOut(step, approval)} />
          </div>
        )}
      </details>
    </li>
  );
}

function nothingOut({ state }: Step, approval: Approval | undefined): string {
  if (approval && isOpen(approval)) return 'Nothing yet: it waits for your answer.';
  return { running: 'Nothing yet.', done: 'Nothing came out.', failed: 'It failed, and did not say why.', unknown: 'The answer ended before it did.' }[state];
}

function Evidence({ label, text, none }: { label: string; text: string; none: string }): JSX.Element {
  return (
    <>
      <p class="label">{label}</p>
      {text === '' ? (
        <p class="none">{none}</p>
      ) : (
        <pre tabIndex={0} role="region" aria-label={label === 'In' ? 'What went in' : 'What came out'}>
          {text}
        </pre>
      )}
    </>
  );
}
