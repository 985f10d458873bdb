import type { JSX } from 'preact';
import { agentWords, type Phone } from '../state/phone';

/** Which room it is, and what can be done in one. */
export function RoomBar({ phone, onLeave }: { phone: Phone; onLeave(): void }): JSX.Element {
  const state = phone.agentState.value;
  const whole = phone.whole.value;
  return (
    <div class="room-bar">
      <p>
        <strong id="room-name">{phone.room.value}</strong>{' '}
        <span id="agent-state" data-state={state ?? 'absent'}>
          {agentWords(state)}
        </span>
      </p>
      <div class="room-tools">
        <button id="whole" type="button" class="button quiet" aria-pressed={whole} onClick={() => (phone.whole.value = !whole)}>
          Conversation
        </button>
        <button id="leave" type="button" class="button quiet" onClick={onLeave}>
          Leave
        </button>
      </div>
    </div>
  );
}
