import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Phone } from '../state/phone';

/** Which room, and as whom. */
export function JoinForm({ phone, onJoin }: { phone: Phone; onJoin(): void }): JSX.Element {
  const room = useRef<HTMLInputElement>(null);
  const name = useRef<HTMLInputElement>(null);
  const [missing, setMissing] = useState(false);
  useEffect(() => room.current?.focus(), []);
  return (
    <main class="sign-in">
      <form
        id="join"
        onSubmit={(event) => {
          event.preventDefault();
          const joins = phone.join(room.current!.value, name.current!.value);
          setMissing(!joins);
          if (joins) onJoin();
        }}
      >
        <h1>Join a room</h1>
        <p>Talk from here with an agent of this gateway, over LiveKit. Whoever joins the same room hears and sees the same.</p>
        <label for="room">Room</label>
        <input
          id="room"
          class="field"
          ref={room}
          value={phone.room.value}
          maxLength={64}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-describedby="room-missing"
          aria-invalid={missing}
        />
        <p id="room-missing" class="wrong" role="alert">
          {missing ? 'A room needs a name.' : ''}
        </p>
        <label for="name">Your name</label>
        <input id="name" class="field" ref={name} value={phone.name.value} maxLength={64} autocomplete="name" aria-describedby="name-why" />
        <p id="name-why" class="note">
          The others in the room see it. It may be left out.
        </p>
        <button type="submit" class="button solid">
          Join
        </button>
      </form>
    </main>
  );
}
