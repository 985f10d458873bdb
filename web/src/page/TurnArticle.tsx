import type { JSX } from 'preact';
import { answerer } from '../state/announce';
import type { App } from '../state/app';
import { isOpen } from '../state/approvals';
import type { Turn } from '../state/turn';
import { cutText } from '../state/transcript';
import { identityOf, tokenWords } from '../state/view';
import { ApprovalCard } from './ApprovalCard';
import { timeWords } from './clock';
import { Icon } from './Icon';
import { Pennant } from './Pennant';
import { Steps } from './Steps';
import { Waterfall } from './Waterfall';

function Thought({ thought, goesOn }: { thought: string; goesOn: boolean }): JSX.Element {
  return (
    <details class="thought" data-live={goesOn ? 'yes' : 'no'}>
      <summary>
        <Icon name="open" small />
        {goesOn ? 'Thinking' : 'Thoughts, no part of the answer'}
        {goesOn && (
          <span class="dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
        )}
      </summary>
      <p tabIndex={0} role="region" aria-label="Thoughts">
        {thought}
      </p>
    </details>
  );
}

/** Full ink was heard; pale ink is still ahead, or was cut off. */
function Answer({ turn }: { turn: Turn }): JSX.Element {
  const { answer, cut, sound, done } = turn;
  const heard = sound ? sound.heard : answer.length;
  const ahead = answer.slice(heard);
  return (
    <p class="said">
      <span data-who="agent">{answer.slice(0, heard)}</span>
      {cut && <span class="cut">{cutText(turn)}</span>}
      {sound && sound.marks.length > 0 && !cut && !done && <i class="caret" aria-hidden="true" />}
      {ahead !== '' && (
        <span class="ahead" data-who="ahead">
          {ahead}
        </span>
      )}
    </p>
  );
}

export function TurnArticle({ app, turn, newest }: { app: App; turn: Turn; newest: boolean }): JSX.Element {
  const model = app.model.peek();
  const speaker = answerer(turn, model);
  const mocked = turn.kind === 'mocked' || turn.kind === 'shell';
  const asked = turn.approvals.filter(isOpen);
  const worked = turn.thought !== '' || turn.steps.length > 0 || asked.length > 0;
  const usage = turn.usage ?? turn.metrics?.usage;
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
          <Pennant identity={mocked ? 'mocked' : identityOf(model, turn.agent)} hoisted />
          <p class="who">{speaker}</p>
          {turn.thought !== '' && <Thought thought={turn.thought} goesOn={turn.thinking} />}
          {turn.steps.length > 0 && <Steps steps={turn.steps} approvals={turn.approvals} />}
          <Answer turn={turn} />
          {asked.map((approval) => (
            <ApprovalCard key={approval.id} app={app} approval={approval} />
          ))}
          {usage && <p class="usage">{tokenWords(usage)}</p>}
        </div>
      )}
      <Waterfall turn={turn} newest={newest} recogniser={model.engines?.transcriber?.label ?? null} />
    </article>
  );
}
