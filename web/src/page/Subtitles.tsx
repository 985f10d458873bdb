import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import type { Phone } from '../state/phone';
import { agentName, identityOf } from '../state/view';
import { ApprovalCard, openQuestions } from './ApprovalCard';
import { Empty } from './Empty';
import { Pennant } from './Pennant';

/** What is being said, over the talk control; and what the agent asks, which stays until it is answered. */
export function Subtitles({ app, phone }: { app: App; phone: Phone }): JSX.Element {
  const model = app.model.value;
  const { user, agent } = phone.subtitles.value;
  const asked = openQuestions(app);
  const scroller = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // The newest line is the one that is read.
    const element = scroller.current!;
    element.scrollTop = element.scrollHeight;
  }, [user, agent, asked.length]);
  const silent = !user && !agent && asked.length === 0;
  return (
    <section id="subtitles" class="conversation subtitles" aria-label="Subtitles" tabIndex={0} ref={scroller}>
      {silent && model.talk.turns.length === 0 ? (
        <Empty app={app} />
      ) : (
        <div class="thread">
          <article class="turn">
            {user && (
              <div class="side user" data-final={user.final ? 'yes' : 'no'}>
                <p class="who">You</p>
                <p class="said" data-who="user">
                  {user.text}
                </p>
              </div>
            )}
            {(agent || asked.length > 0) && (
              <div class="side agent" data-final={agent?.final ? 'yes' : 'no'}>
                <Pennant identity={identityOf(model)} hoisted />
                <p class="who">{agentName(model)}</p>
                {agent && (
                  <p class="said" data-who="agent">
                    {agent.text}
                  </p>
                )}
                {asked.map((approval) => (
                  <ApprovalCard key={approval.id} app={app} approval={approval} />
                ))}
              </div>
            )}
          </article>
        </div>
      )}
    </section>
  );
}
