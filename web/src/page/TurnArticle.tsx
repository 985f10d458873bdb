import type { JSX } from 'preact';
import { answerer } from '../state/announce';
import type { App } from '../state/app';
import type { Cut, Turn } from '../state/talk';
import { timeWords } from './clock';
import { Pennant } from './Pennant';
import { Waterfall } from './Waterfall';

const cutWords: Record<Cut, string> = {
  cancelled: 'you stopped this',
  lost: 'the connection was lost',
  failed: 'the answer broke off',
};

export function TurnArticle({ app, turn, newest }: { app: App; turn: Turn; newest: boolean }): JSX.Element {
  const model = app.model.peek();
  const speaker = answerer(turn.kind, model);
  const identity = turn.kind === 'voice' ? (model.engines?.agent?.name ?? '') : 'mocked';
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
      {(turn.answer !== '' || turn.cut) && (
        <div class="side agent">
          <Pennant identity={identity} hoisted />
          <p class="who">{speaker}</p>
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
