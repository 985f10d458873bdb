import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import type { SignIn as Asked } from '../state/view';

const wrong: Record<Asked, string> = {
  needed: '',
  refused: 'The gateway did not take this token. Check that all of it is there, or ask for a new one.',
  expired: 'The time of this token is over. Ask for a new one.',
};

/** For a gateway that wants to know who comes. */
export function SignIn({ app, asked }: { app: App; asked: Asked }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), [asked]);
  return (
    <main class="sign-in">
      <form
        id="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          const input = field.current!;
          app.signIn(input.value);
          input.value = '';
        }}
      >
        <h1>Who is there?</h1>
        <p>This gateway lets in only those who bring a token. Whoever runs it can make one for you: paste it here, or open the link they sent.</p>
        <label for="token">Token</label>
        <input
          id="token"
          class="field"
          type="password"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          required
          ref={field}
          aria-describedby="token-wrong token-kept"
          aria-invalid={wrong[asked] !== ''}
        />
        <p id="token-wrong" class="wrong" role="alert">
          {wrong[asked]}
        </p>
        <button type="submit" class="button solid">
          Sign in
        </button>
        <p id="token-kept" class="note">
          It is kept until this tab is closed, and sent to this gateway alone.
        </p>
      </form>
    </main>
  );
}
