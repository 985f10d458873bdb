import type { JSX } from 'preact';
import type { App } from '../state/app';
import { openQuestions } from './ApprovalCard';

/** The views: in the bar, and in the settings where the bar has no room for them. */
export function Views({ app, onChoose }: { app: App; onChoose?(): void }): JSX.Element {
  const view = app.view.value;
  const asks = view !== 'talk' && openQuestions(app).length > 0;
  return (
    <nav class="views" aria-label="Views">
      {app.views.map((name) => (
        <a key={name} href={`#${name}`} aria-current={name === view ? 'page' : undefined} onClick={onChoose}>
          {name[0]!.toUpperCase() + name.slice(1)}
          {asks && name === 'talk' && <b> asks</b>}
        </a>
      ))}
    </nav>
  );
}
