import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import { Empty } from './Empty';
import { TurnArticle } from './TurnArticle';

/** How far from the end still counts as being at the end, in px. */
const near = 64;

/** The halyard and what hangs on it. It follows the newest turn, unless the reader has scrolled up. */
export function Conversation({ app }: { app: App }): JSX.Element {
  const { turns } = app.model.value.talk;
  const scroller = useRef<HTMLElement>(null);
  const following = useRef(true);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && following.current) element.scrollTop = element.scrollHeight;
  }, [turns]);
  useLayoutEffect(() => {
    const element = scroller.current!;
    const follow = (): void => {
      if (following.current) element.scrollTop = element.scrollHeight;
    };
    const resized = new ResizeObserver(follow);
    resized.observe(element);
    element.addEventListener('toggle', follow, { capture: true }); // what opens at the end is to be seen
    return () => {
      resized.disconnect();
      element.removeEventListener('toggle', follow, { capture: true });
    };
  }, []);
  const newest = turns.at(-1)?.id;
  return (
    <section
      id="conversation"
      class="conversation"
      aria-label="Conversation"
      tabIndex={0}
      ref={scroller}
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
        following.current = scrollHeight - scrollTop - clientHeight < near;
      }}
    >
      {turns.length === 0 ? (
        <Empty app={app} />
      ) : (
        <div class="thread">
          {turns.map((turn) => (
            <Drawn key={turn.id} app={app} turn={turn} newest={turn.id === newest} />
          ))}
        </div>
      )}
    </section>
  );
}

/** A turn is a value: one that did not change is not drawn again, however long the conversation is. */
function Drawn(props: Parameters<typeof TurnArticle>[0]): JSX.Element {
  return useMemo(() => <TurnArticle {...props} />, [props.turn, props.newest]);
}
