import type { JSX } from 'preact';
import { agentWords, type Phone } from '../state/phone';

/** Which room it is, and what can be done in one. */
export function RoomBar({ phone, onHandsFree, onLeave }: { phone: Phone; onHandsFree(on: boolean): void; onLeave(): void }): JSX.Element {
  const state = phone.agentState.value;
  const handsFree = phone.handsFree.value;
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
        <button id="hands-free" type="button" class="button quiet" aria-pressed={handsFree} aria-describedby="hands-free-why" onClick={() => onHandsFree(!handsFree)}>
          {handsFree && <i class="live" aria-hidden="true" />}
          Hands-free
        </button>
        <button id="whole" type="button" class="button quiet" aria-pressed={whole} onClick={() => (phone.whole.value = !whole)}>
          Conversation
        </button>
        <button id="leave" type="button" class="button quiet" onClick={onLeave}>
          Leave
        </button>
      </div>
      <p class="unseen" id="hands-free-why">
        {handsFree ? 'The microphone is open. Press to close it.' : 'The microphone stays open, and the end of your words is found by itself.'}
      </p>
    </div>
  );
}
