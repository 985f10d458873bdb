import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { App } from '../state/app';
import { turnActive } from '../state/helm';
import type { Phone } from '../state/phone';
import { Switch } from './Choice';

/** Whose work is shown in the room beside the agent's. It holds for everybody there. */
export function FollowGroup({ app, phone, onLook, onFollow }: { app: App; phone: Phone; onLook(): void; onFollow(id: string, on: boolean): void }): JSX.Element | null {
  const followed = phone.follow.value;
  const there = followed !== null;
  useEffect(() => {
    if (there) onLook();
  }, [there]);
  if (followed === null) return null;
  const running = turnActive(app.model.value);
  const { choices } = phone;
  return (
    <section id="follow">
      <h3>Other agents</h3>
      {choices.map(({ id, name, here }, i) => (
        <Switch
          key={id}
          id={`follow-${i}`}
          label={name}
          detail={here ? 'The gateway listens to it.' : 'The gateway does not listen to it now.'}
          on={followed.includes(id)}
          disabled={running}
          onChange={(on) => onFollow(id, on)}
        />
      ))}
      <p class="note" role="status">
        {phone.notFollowed.value ||
          (running
            ? 'Off during a turn.'
            : choices.length === 0
              ? 'The gateway listens to no other agent. Whoever runs it connects them, in the view Signals of its page.'
              : 'What they do is shown to everybody in this room.')}
      </p>
    </section>
  );
}
