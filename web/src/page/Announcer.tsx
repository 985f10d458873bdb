import type { JSX } from 'preact';
import type { App } from '../state/app';

/** Seen by nobody, read aloud by screen readers: each paragraph as it is added. */
export function Announcer({ app }: { app: App }): JSX.Element {
  return (
    <div id="announcements" class="unseen" aria-live="polite" aria-relevant="additions">
      {app.announcements.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
